"""The lives of jobs as bronze tables of a lake, made by Spark where they are needed: nothing is read from a store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bench.pipeline import lives
from bench.pipeline.places import session
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from jobwire.pipeline.lake.lake import Lake, folder_of
from jobwire.pipeline.lake.schemas import BRONZE_EVENTS, SNAPSHOTS
from jobwire.pipeline.spark.utc import utc_day

STORE, QUEUE = "bullmq+redis://bench", "mail"
SEEN_MS = lives.BEGIN_MS + lives.SPAN_MS + 3_600_000


def make(root: Path, events: int) -> dict[str, int]:
    """Bronze of about so many events, and a snapshot of the jobs that are kept. How many there are of each."""
    jobs = lives.jobs_for(events)
    lake = Lake(str(root))
    with session(2) as spark:
        lake.add_events(folder_of(QUEUE), event_rows(spark, jobs), None, "bench")
        kept = lake.add_snapshot(QUEUE, snapshot_rows(spark, jobs), "bench")
        found = lake.bronze_events(spark).count()
    assert found == lives.events_of(jobs), (found, lives.events_of(jobs))
    return {"events": found, "jobs": jobs, "snapshots": kept}


def event_rows(spark: Any, jobs: int) -> DataFrame:
    job = F.col("id")
    turn = F.pmod(job, F.lit(lives.TURN))
    steps = F.lit(None)
    for life in dict.fromkeys(lives.LIVES):
        places = [place for place, each in enumerate(lives.LIVES) if each == life]
        steps = F.when(turn.isin(*places), _steps(life, jobs)).otherwise(steps)
    at = F.timestamp_millis("ms")
    return (
        spark.range(jobs)
        .select("id", F.inline(steps))
        .select(
            F.lit(STORE).alias("store"),
            F.lit(QUEUE).alias("queue"),
            F.concat_ws("-", "ms", (job * 10 + F.col("number")).cast("string")).alias("id"),
            "kind",
            job.cast("string").alias("job_id"),
            at.alias("at"),
            "data",
            F.lit(None).cast("string").alias("malformed"),
            F.timestamp_millis(F.lit(SEEN_MS)).alias("ingested_at"),
            utc_day(at).alias("day"),
        )
        .select(*BRONZE_EVENTS.names)
    )


def _steps(life: tuple[lives.Step, ...], jobs: int) -> Column:
    job = F.col("id")
    now = lives.begins(job, jobs)
    found: list[Column] = []
    for number, step in enumerate(life):
        now += _passes(job, step.after)
        fields = [_field(name, value, jobs) for name, value in step.fields]
        text = F.concat(F.lit("{"), F.concat_ws(",", *fields), F.lit("}")) if fields else F.lit("{}")
        parts = {"number": F.lit(number), "ms": now, "kind": F.lit(step.kind), "data": text}
        found.append(F.struct(*(part.alias(name) for name, part in parts.items())))
    return F.array(*found)


def _passes(job: Column, what: str | None) -> Column:
    if what is None or what == "delay":
        return F.lit(lives.DELAY_MS if what else 0)
    kind, _, number = what.partition(" ")
    draw = lives.DRAWS[kind]
    drawn = F.pmod(job * draw.stride + int(number) * draw.shift, F.lit(draw.values))
    return F.floor(drawn * drawn / draw.shrink)


def _field(name: str, value: str, jobs: int) -> Column:
    own = {
        "$name": _of_turn(lives.NAMES),
        "$error": _of_turn(lives.ERRORS),
        "$due": (lives.begins(F.col("id"), jobs) + lives.DELAY_MS).cast("string"),
    }
    escaped = value.replace('"', '\\"')
    return F.concat(F.lit(f'"{name}":"'), own.get(value, F.lit(escaped)), F.lit('"'))


def _of_turn(values: tuple[str, ...]) -> Column:
    number = F.pmod(F.floor(F.col("id") / lives.TURN), F.lit(len(values)))
    return F.get(F.array(*map(F.lit, values)), number)


def snapshot_rows(spark: Any, jobs: int) -> DataFrame:
    """Finished jobs that the store still keeps, as BullMQ has them."""
    job = F.col("id")
    turn = F.pmod(job, F.lit(lives.TURN))
    failed = turn.isin(*(place for place, life in enumerate(lives.LIVES) if life == lives.FAILED))
    twice = turn.isin(*(place for place, life in enumerate(lives.LIVES) if life in (lives.RETRIED, lives.FAILED)))
    late = turn.isin(*(place for place, life in enumerate(lives.LIVES) if life == lives.DELAYED))
    begun = lives.begins(job, jobs)
    first = begun + F.when(late, lives.DELAY_MS).otherwise(0) + _passes(job, "wait 0")
    started = F.when(twice, first + _passes(job, "run 0") + _passes(job, "wait 1")).otherwise(first)
    ended = started + F.when(twice, _passes(job, "run 1")).otherwise(_passes(job, "run 0"))
    payload = F.format_string('{"n":%d,"to":"zoë-%d@例え.jp","text":"' + "x" * 120 + '"}', job, job)
    known = {
        "store": F.lit(STORE),
        "queue": F.lit(QUEUE),
        "id": job.cast("string"),
        "name": _of_turn(lives.NAMES),
        "state": F.when(failed, "failed").otherwise("completed"),
        "native_state": F.when(failed, "failed").otherwise("completed"),
        "priority": F.lit(0).cast("bigint"),
        "attempts": F.lit(2),
        "attempts_made": F.when(twice, 2).otherwise(1),
        "payload": payload,
        "result": F.when(~failed, '{"sent":true}'),
        "error": F.when(failed, _of_turn(lives.ERRORS)),
        "created_at": F.timestamp_millis(begun),
        "run_at": F.when(late, F.timestamp_millis(begun + lives.DELAY_MS)),
        "started_at": F.timestamp_millis(started),
        "finished_at": F.timestamp_millis(ended),
        "worker": F.concat(F.lit("worker-"), F.pmod(job, F.lit(8)).cast("string")),
        "raw": F.lit("{}"),
        "fingerprint": F.sha1(payload),
        "seen_at": F.timestamp_millis(F.lit(SEEN_MS)),
        "run": F.lit("bench"),
    }
    types = dict(SNAPSHOTS.fields)
    kept = spark.range(jobs).where(F.pmod(F.floor(job / lives.TURN), F.lit(lives.KEPT_OF)) == 0)
    return kept.select(
        *(known.get(name, F.lit(None)).cast(types[name]).alias(name) for name in SNAPSHOTS.names),
    )
