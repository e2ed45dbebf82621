"""Gold tables as a real week, and as ten seconds, would give them."""

from __future__ import annotations

import functools
import json
import math
from datetime import UTC, date, datetime, timedelta

import numpy as np
import pandas as pd

from jobwire.pipeline.lake import campaign_schemas, schemas
from jobwire.pipeline.report import Period

MONDAY = datetime(2026, 5, 11, tzinfo=UTC)
WEEK = Period(MONDAY, MONDAY + timedelta(days=7))
MOMENT = Period(MONDAY + timedelta(hours=9, minutes=12), MONDAY + timedelta(hours=9, minutes=12, seconds=10))

BULLMQ, PGBOSS = "bullmq+redis://10.0.0.4:6379/0", "pgboss+postgresql://10.0.0.5/app"
MONQUE, BRIDGEMQ = "monque+mongodb://10.0.0.6/app", "bridgemq+redis://10.0.0.4:6379/1"

# store, queue, name, jobs in a busy hour, share that fails at first, p50 wait (ms), p50 run (ms), spread of both
KINDS = (
    (BULLMQ, "emails", "welcome", 4_200, 0.030, 18, 85, 0.7),
    (BULLMQ, "emails", "newsletter", 9_000, 0.055, 60, 140, 0.9),
    (BULLMQ, "emails", "password-reset", 1_600, 0.020, 12, 80, 0.6),
    (PGBOSS, "invoices", "invoices", 1_700, 0.012, 240, 620, 0.5),
    (MONQUE, "thumbnails", "thumbnails", 4_900, 0.004, 95, 1_900, 0.8),
    (BRIDGEMQ, "video.transcode", "video.transcode", 110, 0.040, 2_600, 48_000, 0.6),
)
ERRORS = {
    "emails": (("ConnectionError", 0.62), ("RateLimited", 0.28), ("InvalidAddress", 0.10)),
    "invoices": (("DeadlockDetected", 0.7), ("ValidationError", 0.3)),
    "thumbnails": (("UnsupportedFormat", 0.8), ("MemoryError", 0.2)),
    "video.transcode": (("TimeoutError", 0.9), ("CodecMissing", 0.1)),
}
MESSAGES = {
    "ConnectionError": "smtp.example.com:587 refused the connection",
    "RateLimited": "429 Too Many Requests, try again in 30 s",
    "InvalidAddress": "recipient has no domain",
    "DeadlockDetected": "process 4121 waits for ShareLock on transaction 88120",
    "ValidationError": "total must not be negative",
    "UnsupportedFormat": "image/heic",
    "MemoryError": "frame of 21000 x 14000 pixels",
    "TimeoutError": "no progress for 600 s",
    "CodecMissing": "av1",
}
WORKERS = {
    "emails": ("mail-1", "mail-2", "mail-3"),
    "invoices": ("billing-1",),
    "thumbnails": ("media-1", "media-2", "media-3", "media-4"),
    "video.transcode": ("gpu-1", "gpu-2"),
}


TABLES = (
    *("throughput_hourly", "latency_hourly", "failures_daily", "workers_hourly", "retries"),
    *("quality", "gaps", "runs"),
)
"""The names of a week's tables. Making a week takes a second, which is too long for the collecting of tests."""


def week() -> dict[str, pd.DataFrame]:
    """Seven days of four queues in four protocols: busy days, quiet nights, and a mail server down on Thursday."""
    return {name: table.copy() for name, table in _one_week().items()}


@functools.cache
def _one_week() -> dict[str, pd.DataFrame]:
    chance = np.random.default_rng(7)
    hours = [MONDAY + timedelta(hours=number) for number in range(168)]
    tables = _gathered(chance, hours, _daily_course)
    tables["quality"] = _checks()
    noticed = datetime(2026, 5, 12, 11, 2, tzinfo=UTC)
    tables["gaps"] = _frame([(BULLMQ, "emails", "1778580000000-0", "1778583600000-12", 3_412, noticed)], schemas.GAPS)
    tables["runs"] = _runs()
    assert tuple(tables) == TABLES
    return tables


def moment() -> dict[str, pd.DataFrame]:
    """Ten seconds, which all fall into one hour: what the demo leaves behind."""
    chance = np.random.default_rng(7)
    tables = _gathered(chance, [datetime(2026, 5, 11, 9, tzinfo=UTC)], lambda at: 0.09)
    tables["workers_hourly"]["busy_ms"] *= 10_000 / 3_600_000
    tables["quality"] = _checks().query("value == 0 or ok")
    tables["gaps"] = _frame([], schemas.GAPS)
    tables["runs"] = _runs().head(3).assign(outcome="ok")
    return tables


def _daily_course(at: datetime) -> float:
    weekend = 0.35 if at.weekday() >= 5 else 1.0
    return weekend * (0.12 + max(0.0, math.sin((at.hour - 5) / 16 * math.pi)) ** 1.5)


def _mail_down(at: datetime) -> bool:
    return at.date() == date(2026, 5, 14) and 13 <= at.hour < 17


def _gathered(chance, hours, course) -> dict[str, pd.DataFrame]:
    throughput, latency, failed, busy, retried = [], [], {}, {}, {}
    for store, queue, name, size, fault, wait, run, spread in KINDS:
        for hour in hours:
            strain = course(hour)
            down = queue == "emails" and _mail_down(hour)
            added = int(chance.poisson(size * strain))
            rate = 0.34 if down else fault
            again = int(chance.binomial(added, rate))
            lost = int(chance.binomial(again, 0.45 if down else 0.3))
            stalled = int(chance.binomial(added, 0.0006))
            saved = again - lost
            second = round(saved * 0.8)
            extra = second + 2 * (again - second)
            runs = added + extra
            throughput.append((store, queue, name, hour, added, runs, added - lost, lost, stalled, extra))
            if added:
                slow = wait * (0.5 + 2.2 * strain**2) * (9 if down else 1)
                waits = chance.lognormal(math.log(slow), spread + 0.4, runs).round()
                took = chance.lognormal(math.log(run), spread, runs).round()
                levels = [round(np.percentile(times, level)) for times in (waits, took) for level in (50, 95, 99)]
                latency.append((store, queue, name, hour, runs, *levels, sketch(waits), sketch(took)))
            for error, part in ERRORS[queue]:
                key = (store, queue, name, hour.date(), error)
                first, _, total = failed.get(key, (hour + timedelta(minutes=3), hour, 0))
                failed[key] = (first, hour + timedelta(minutes=int(chance.integers(4, 59))), total + int(again * part))
            for number, worker in enumerate(WORKERS[queue]):
                part = (len(WORKERS[queue]) - number + 1) / sum(range(2, len(WORKERS[queue]) + 2))
                key = (store, queue, worker, hour)
                done, spent = busy.get(key, (0, 0))
                busy[key] = (done + int(runs * part), spent + min(int(runs * part * run * 1.3), 3_500_000 - spent))
            taken = {1: (added - again, added - again), 2: (second, second), 3: (again - second, saved - second)}
            for attempts, (jobs, good) in taken.items():
                done, succeeded = retried.get((store, queue, name, attempts), (0, 0))
                retried[store, queue, name, attempts] = (done + jobs, succeeded + good)
    failures = [
        (*key, total, max(1, int(total * 0.8)), f"{key[4]}: {MESSAGES[key[4]]}", first, last)
        for key, (first, last, total) in failed.items()
        if total
    ]
    workers = [(*key, *value, value[1] / 3_600_000) for key, value in busy.items()]
    retries = [(*key, done, good, good / done) for key, (done, good) in retried.items() if done]
    return {
        "throughput_hourly": _frame(throughput, schemas.THROUGHPUT_HOURLY),
        "latency_hourly": _frame(latency, schemas.LATENCY_HOURLY),
        "failures_daily": _frame(failures, schemas.FAILURES_DAILY),
        "workers_hourly": _frame(workers, schemas.WORKERS_HOURLY),
        "retries": _frame(retries, schemas.RETRIES),
    }


def _frame(rows, columns: schemas.Columns) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=list(columns.names))


def sketch(times) -> str:
    """The text in which the gold table counts durations: buckets that grow by 2 %, -1 for those below 1 ms."""
    numbers = np.where(times < 1, -1, np.ceil(np.log(np.maximum(times, 1)) / math.log(1.02)))
    return json.dumps(
        {str(int(number)): int(many) for number, many in zip(*np.unique(numbers, return_counts=True), strict=True)}
    )


def _checks() -> pd.DataFrame:
    rows = []
    for number, (store, queue) in enumerate(dict.fromkeys((kind[0], kind[1]) for kind in KINDS)):
        malformed = 3 if queue == "emails" else 0
        rows += [
            ("duplicate events", store, queue, 812 * number, True, "read more than once and kept once"),
            ("open attempts", store, queue, 2 * number, True, "runs without an end"),
            ("malformed rows", store, queue, malformed, not malformed, "left out, kept in quarantine"),
            ("finished before started", store, queue, 0, True, "the clocks of nodes differ"),
        ]
    return _frame(rows, schemas.QUALITY)


def _runs() -> pd.DataFrame:
    rows = []
    for number in range(14):
        start = MONDAY + timedelta(hours=12 * number, minutes=2)
        outcome = "failed" if number == 6 else "ok"
        end, later = start + timedelta(seconds=31), start + timedelta(minutes=1)
        rows.append((f"i{number}", "ingest", start, end, outcome, 151_000, 151_000, "{}", "{}", None))
        end = later + timedelta(seconds=52)
        rows.append((f"b{number}", "build", later, end, "ok", 151_000, 9_400, "{}", "{}", None))
    return _frame(rows, schemas.RUNS)


def campaigns() -> dict[str, pd.DataFrame]:
    """The same week of three campaigns: one that keeps its rate, one that exceeds it on Wednesday, one in TEST mode."""
    store = "postgresql://10.0.0.5/app"
    hourly, daily = [], []
    for key, name, mode, rate, hours in (
        ("c1", "Spring sale", "LIVE", 60, range(8, 110)),
        ("c2", "Newsletter May", "LIVE", 20, range(50, 62)),
        ("c3", "Trial", "TEST", 30, range(30, 34)),
    ):
        failed: dict[date, int] = {}
        for number in hours:
            hour = MONDAY + timedelta(hours=number)
            if not 7 <= hour.hour < 21:
                continue
            busiest = rate + 6 if (key, number) == ("c2", 55) else rate - number % 3
            sent, bad = int(busiest * (50 + number % 9)), (number % 5) * rate // 3
            figures = (sent, bad, sent + bad + bad * 2, bad * 2, hour + timedelta(minutes=5), busiest, rate)
            hourly.append((store, key, name, mode, hour, *figures))
            failed[hour.date()] = failed.get(hour.date(), 0) + bad
        for day, bad in failed.items():
            parts = {"CHAT_WRITE_FORBIDDEN": bad - bad // 3, "USERNAME_NOT_RESOLVED": bad // 4}
            parts["TIMEOUT"] = bad - sum(parts.values())
            figures = [sum(row[place] for row in hourly if row[1] == key and row[4].date() == day) for place in (5, 8)]
            peak = (MONDAY, rate, rate)
            daily.append((store, key, name, mode, day, figures[0], bad, figures[1], bad, *peak, json.dumps(parts)))
    health = []
    for number in range(400):
        silent = MONDAY + timedelta(hours=7 * number - 30) if number < 16 else None
        success = None if number % 7 == 3 else MONDAY + timedelta(hours=number % 90 - 40)
        active = None if number == 5 else number % 4 != 0
        reason = "CHAT_WRITE_FORBIDDEN" if number % 2 else "USERNAME_NOT_RESOLVED"
        errors = 2 + number % 4
        health.append(
            (
                store,
                f"ch{number}",
                f"@channel_{number}",
                "news",
                active,
                9,
                errors,
                errors,
                success,
                silent,
                reason,
                silent,
            )
        )
    return {
        "campaign_hourly": _frame(hourly, campaign_schemas.CAMPAIGN_HOURLY),
        "campaign_daily": _frame(daily, campaign_schemas.CAMPAIGN_DAILY),
        "channel_health": _frame(health, campaign_schemas.CHANNEL_HEALTH),
    }
