"""Campaigns: how fast an outbox is served beside a bare drain, what a message costs at each size, and a held rate.

    python -m bench.campaigns [--only drain cost acts rate] [--results bench/results]

* drain: messages per second of a campaign without a limit into the outbox, beside no-op jobs on the same server: of
  pg-boss under Node.js, and of jobwire on pg-boss's tables. Each is timed from the first job to the last, and the
  campaign feeds its queue meanwhile, while the no-op jobs wait in theirs from the start.
* cost: milliseconds of the database and of the worker per message, for campaigns of 1,000, 10,000 and 100,000.
* acts: the time until a pause, another rate and a cancel of a campaign of 100,000 messages act.
* rate: 600 messages per minute for two minutes, sent by three worker processes.

One embedded PostgreSQL that does not sync. Writes `campaigns.json`, `campaigns.md` and `campaigns.svg`. Nothing is
asserted about timings.
"""

# ruff: noqa: E501 - lines of the page and of the drawing

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import tempfile
import time
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import psycopg
from bench.pgboss.contenders import CLIENTS, NODE
from bench.postgres_cpu import processor_seconds

from jobwire import ActiveJob, NewJob, Queue, Worker, embedded
from jobwire.campaigns import CampaignService, CampaignWorker
from jobwire.campaigns.sending.queues import queue_url

CONCURRENCY = 100
UNLIMITED = 60_000_000
SIZES = (1_000, 10_000, 100_000)


class Bench:
    """One server, and the parts of the benchmark on it."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url = url
        self.folder = folder
        self.made = 0

    async def campaign(self, service: CampaignService, channels: int, rate: int) -> str:
        """Creates a campaign for new channels. Returns its id."""
        self.made += 1
        name = f"c{self.made}"
        file = self.folder / f"{name}.csv"
        file.write_text("username\n" + "".join(f"@{name}_{number:06}\n" for number in range(channels)))
        await service.import_channels(file, batch=name)
        await service.add_template(name, "Hello {username}, this is campaign {number}.")
        created = await service.create(
            name, batch=name, template=name, rate=rate, mode="LIVE", params={"number": self.made}
        )
        return created.id

    def worker(self, outbox: Path | None = None) -> CampaignWorker:
        """Returns a worker that writes into an outbox of its own."""
        file = outbox or self.folder / f"{time.monotonic_ns()}.jsonl"
        return CampaignWorker(self.url, f"outbox:{file}", concurrency=CONCURRENCY)

    async def send(self, service: CampaignService, campaign_id: str) -> float:
        """Sends a whole campaign. Returns the seconds from the first message in the outbox to the last."""
        outbox = self.folder / f"{campaign_id}.jsonl"
        await service.start(campaign_id)
        async with self.worker(outbox) as worker:
            await worker.run_until_done(signals=False)
        times = sorted(datetime.fromisoformat(json.loads(line)["at"]).timestamp() for line in outbox.open())
        return times[-1] - times[0]

    async def bare(self, jobs: int) -> float:
        """Runs no-op jobs of the size of a message. Returns the seconds from the first to the last."""
        times: list[float] = []

        async def no_op(job: ActiveJob) -> None:
            times.append(time.perf_counter())

        async with CampaignService(self.url) as service:
            url = queue_url(service.settings)
        name = f"bare{time.monotonic_ns()}"
        payload = {"jobId": "c" * 25, "campaignId": "c" * 25, "channelId": "c" * 25, "text": "x" * 60}
        async with Queue(name, url) as queue:
            for _ in range(0, jobs, 1000):
                await queue.add_many([NewJob(payload) for _ in range(1000)])
        worker = Worker(name, no_op, url, concurrency=CONCURRENCY)
        await worker.run_until_idle(signals=False)
        return times[-1] - times[0]

    async def node(self, jobs: int) -> float:
        """Runs no-op jobs with pg-boss under Node.js, in a database of their own. Returns the seconds."""
        name = f"bare{time.monotonic_ns()}"
        order = {"url": self.url.rpartition("/")[0] + f"/{name}", "kind": "drain", "jobs": jobs}
        command = [str(NODE), str(CLIENTS / "node.mjs"), "1", json.dumps(order | {"concurrency": CONCURRENCY})]
        async with await psycopg.AsyncConnection.connect(self.url, autocommit=True) as connection:
            await connection.execute(f"CREATE DATABASE {name}")  # type: ignore[arg-type]
            done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, check=True)
            await connection.execute(f"DROP DATABASE {name} WITH (FORCE)")  # type: ignore[arg-type]
        return json.loads(done.stdout.splitlines()[-1])["seconds"]


async def drain(bench: Bench, messages: int = 20_000, rounds: int = 5) -> dict[str, Any]:
    """The outbox beside bare drains, in turns. The processor time is that from the start of a campaign to its end."""
    per_second: dict[str, list[float]] = {"outbox": [], "pg-boss": [], "jobwire": []}
    processor: dict[str, list[float]] = {"worker": [], "database": []}
    load: list[float] = []
    async with CampaignService(bench.url) as service:
        for _ in range(rounds):
            per_second["pg-boss"].append(messages / await bench.node(messages))
            per_second["jobwire"].append(messages / await bench.bare(messages))
            campaign_id = await bench.campaign(service, messages, UNLIMITED)
            before = time.process_time(), processor_seconds(bench.url)
            per_second["outbox"].append(messages / await bench.send(service, campaign_id))
            for name, first, last in zip(
                processor, before, (time.process_time(), processor_seconds(bench.url)), strict=True
            ):
                processor[name].append(1e6 * (last - first) / messages)
            load.append(os.getloadavg()[0])
            print({name: round(found[-1]) for name, found in (per_second | processor).items()}, load[-1], flush=True)
    middle = {name: statistics.median(found) for name, found in per_second.items()}
    rounds_of = {
        name: [one / other for one, other in zip(per_second["outbox"], per_second[name], strict=True)]
        for name in ("pg-boss", "jobwire")
    }
    return {
        "messages": messages,
        "per_second": per_second,
        "median": middle,
        "ratios": {name: statistics.median(found) for name, found in rounds_of.items()},
        "ratios_of_rounds": rounds_of,
        "processor_microseconds": {name: statistics.median(found) for name, found in processor.items()},
        "load": load,
    }


async def cost(bench: Bench) -> list[dict[str, Any]]:
    """The cost of a message in campaigns of several sizes, each sent whole."""
    rows: list[dict[str, Any]] = []
    async with CampaignService(bench.url) as service:
        for size in SIZES:
            campaign_id = await bench.campaign(service, size, UNLIMITED)
            began = time.perf_counter()
            await service.start(campaign_id)
            async with bench.worker() as worker:
                running = asyncio.create_task(worker.run_until_done(signals=False))
                first = await _until_sent(service, campaign_id, 1)
                marks = [(first, time.perf_counter(), time.process_time())]
                for part in (0.25, 0.5, 0.75, 1.0):
                    sent = await _until_sent(service, campaign_id, int(size * part))
                    marks.append((sent, time.perf_counter(), time.process_time()))
                await running
            parts = [
                {"until": b[0], "ms_per_message": 1000 * (b[1] - a[1]) / max(b[0] - a[0], 1),
                 "cpu_ms_per_message": 1000 * (b[2] - a[2]) / max(b[0] - a[0], 1)}
                for a, b in pairwise(marks)
            ]  # fmt: skip
            rows.append({"size": size, "first_message_after": marks[0][1] - began, "parts": parts})
            print(size, [round(part["ms_per_message"], 3) for part in parts], flush=True)
    return rows


async def _until_sent(service: CampaignService, campaign_id: str, goal: int) -> int:
    while (sent := (await service.status(campaign_id)).sent) < goal:
        await asyncio.sleep(0.05)
    return sent


async def acts(bench: Bench, messages: int = 100_000) -> dict[str, float]:
    """Seconds until an act on a large campaign has its effect, as seen in the outbox."""
    found: dict[str, float] = {}
    async with CampaignService(bench.url) as service:
        campaign_id = await bench.campaign(service, messages, 6000)
        await service.start(campaign_id)
        async with bench.worker() as worker:
            running = asyncio.create_task(worker.run(signals=False))
            await _until_sent(service, campaign_id, 300)
            began = time.perf_counter()
            await service.pause(campaign_id)
            found["pause_call"] = time.perf_counter() - began
            found["last_message_after_pause"] = await _last_change(service, campaign_id, began)
            began = time.perf_counter()
            before = (await service.status(campaign_id)).sent
            await service.set_rate(campaign_id, 60_000)
            await service.resume(campaign_id)
            await _until_sent(service, campaign_id, before + 1)
            found["first_message_after_resume"] = time.perf_counter() - began
            began = time.perf_counter()
            await service.set_rate(campaign_id, 1)
            found["rate_call"] = time.perf_counter() - began
            found["last_message_after_lower_rate"] = await _last_change(service, campaign_id, began)
            began = time.perf_counter()
            await service.cancel(campaign_id)
            found["cancel_call"] = time.perf_counter() - began
            await worker.stop()
            await running
    return found


async def _last_change(service: CampaignService, campaign_id: str, began: float) -> float:
    """Seconds from the beginning to the last message, seen over four quiet seconds."""
    sent, last = (await service.status(campaign_id)).sent, began
    while time.perf_counter() - last < 4:
        now = (await service.status(campaign_id)).sent
        if now != sent:
            sent, last = now, time.perf_counter()
        await asyncio.sleep(0.02)
    return last - began


async def rate(bench: Bench, per_minute: int = 600, minutes: float = 2.0, workers: int = 3) -> dict[str, Any]:
    """A held rate with several worker processes, measured on the times in the outbox."""
    outbox = bench.folder / "rate.jsonl"
    async with CampaignService(bench.url) as service:
        campaign_id = await bench.campaign(service, int(per_minute * (minutes + 1)), per_minute)
        processes = [
            await asyncio.create_subprocess_exec(
                "jobwire", "campaign", "worker", "--url", bench.url, "--transport", f"outbox:{outbox}"
            )
            for _ in range(workers)
        ]
        try:
            await service.start(campaign_id)
            await _until_sent(service, campaign_id, 1)
            await asyncio.sleep(60 * minutes + 10)
            await service.cancel(campaign_id)
        finally:
            for process in processes:
                process.terminate()
            await asyncio.gather(*(process.wait() for process in processes))
    times = sorted(datetime.fromisoformat(json.loads(line)["at"]).timestamp() for line in outbox.open())
    start = times[0] + 5
    counted = sum(start <= moment < start + 60 * minutes for moment in times)
    most = max(sum(begin <= moment < begin + 60 for moment in times) for begin in times[:: max(1, len(times) // 300)])
    return {
        "asked_per_minute": per_minute,
        "workers": workers,
        "minutes": minutes,
        "per_minute": counted / minutes,
        "ratio": counted / minutes / per_minute,
        "most_in_any_minute": most,
        "per_second": [
            sum(start + second <= moment < start + second + 1 for moment in times)
            for second in range(int(60 * minutes))
        ],
    }


PARTS = {"drain": drain, "cost": cost, "acts": acts, "rate": rate}


async def run(only: list[str]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder, embedded.postgres(folder, durable=False) as server:
        bench = Bench(server.url, Path(folder))
        async with CampaignService(server.url) as service:
            await service.init()
        found: dict[str, Any] = {}
        for name in only:
            found[name] = await PARTS[name](bench)
            print(name, {key: value for key, value in found[name].items() if key != "per_second" or name == "drain"}
                  if isinstance(found[name], dict) else "done", flush=True)  # fmt: skip
        return found


def write(results: Path, new: dict[str, Any]) -> None:
    """Writes the figures, keeping those of parts that were not run."""
    file = results / "campaigns.json"
    found: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    found |= new | {"date": datetime.now(UTC).date().isoformat()}
    file.write_text(json.dumps(found, indent=1) + "\n")
    (results / "campaigns.md").write_text(table(found))
    (results / "campaigns.svg").write_text(picture(found))


def table(found: dict[str, Any]) -> str:
    """Returns the figures as a page."""
    lines = [
        "# Campaigns",
        "",
        f"`python -m bench.campaigns`, {found['date']}, one embedded PostgreSQL without sync.",
        "",
    ]
    if "drain" in found:
        part = found["drain"]
        middle, ratios = part["median"], part["ratios"]
        lines += [
            f"* **Drain**: {part['messages']:,} messages without a limit into the outbox, {middle['outbox']:,.0f} per second."
            f" No-op jobs on the same server: pg-boss {middle['pg-boss']:,.0f} (ratio **{ratios['pg-boss']:.2f}**),"
            f" jobwire {middle['jobwire']:,.0f} (ratio **{ratios['jobwire']:.2f}**). Medians of {len(part['per_second']['outbox'])};"
            f" ratios of the rounds to pg-boss {', '.join(f'{one:.2f}' for one in part['ratios_of_rounds']['pg-boss'])},"
            f" to jobwire {', '.join(f'{one:.2f}' for one in part['ratios_of_rounds']['jobwire'])}."
            f" A message took {part['processor_microseconds']['worker']:.0f} µs of the worker's processor time and"
            f" {part['processor_microseconds']['database']:.0f} of the database's, its creation included."
            f" Load of the machine, which has {os.cpu_count()} processors: {min(part['load']):.0f} to {max(part['load']):.0f}.",
        ]
    if "acts" in found:
        named = {key.replace("_", " "): value for key, value in found["acts"].items()}
        lines += [
            "* **Acts** on 100,000 messages, seconds: " + ", ".join(f"{k} {v:.2f}" for k, v in named.items()) + "."
        ]
    if "rate" in found:
        part = found["rate"]
        lines += [
            f"* **Rate**: {part['asked_per_minute']} per minute asked, {part['per_minute']:.1f} sent by {part['workers']}"
            f" workers over {part['minutes']:g} minutes (**{100 * part['ratio']:.1f} %**), at most"
            f" {part['most_in_any_minute']} in any 60 seconds.",
        ]
    if "cost" in found:
        lines += [
            "",
            "| messages | first sent after | ms per message, by quarter | CPU of the worker |",
            "|---:|---:|---|---:|",
        ]
        for row in found["cost"]:
            parts = row["parts"]
            quarters = ", ".join(f"{part['ms_per_message']:.2f}" for part in parts)
            cpu = sum(part["cpu_ms_per_message"] for part in parts) / len(parts)
            lines += [f"| {row['size']:,} | {row['first_message_after']:.1f} s | {quarters} | {cpu:.2f} ms |"]
    return "\n".join(lines) + "\n"


def picture(found: dict[str, Any]) -> str:
    """Returns the cost of a message by the size of its campaign, and the held rate, as a drawing."""
    parts = ['<svg xmlns="http://www.w3.org/2000/svg" width="720" height="300" font-family="sans-serif" font-size="12">',
             '<rect width="720" height="300" fill="white"/>']  # fmt: skip
    if "cost" in found:
        parts.append(
            '<text x="20" y="24" font-weight="bold">Milliseconds per message, by quarter of the campaign</text>'
        )
        highest = max(part["ms_per_message"] for row in found["cost"] for part in row["parts"])
        for at, row in enumerate(found["cost"]):
            for quarter, part in enumerate(row["parts"]):
                height = 180 * part["ms_per_message"] / highest
                x = 30 + at * 105 + quarter * 22
                parts.append(f'<rect x="{x}" y="{240 - height:.1f}" width="18" height="{height:.1f}" fill="#2a6f97"/>')
                parts.append(f'<text x="{x}" y="{236 - height:.1f}" font-size="9">{part["ms_per_message"]:.2f}</text>')
            parts.append(f'<text x="{30 + at * 105}" y="258">{row["size"]:,}</text>')
    if "rate" in found:
        row = found["rate"]
        per_second = row["per_second"]
        parts.append(
            f'<text x="370" y="24" font-weight="bold">{row["asked_per_minute"]} per minute, three workers: sent per second</text>'
        )
        width = 320 / len(per_second)
        for second, count in enumerate(per_second):
            height = 180 * count / max(*per_second, row["asked_per_minute"] / 60 * 1.5)
            parts.append(
                f'<rect x="{370 + second * width:.1f}" y="{240 - height:.1f}" width="{width * 0.8:.1f}" height="{height:.1f}" fill="#2a6f97"/>'
            )
        level = 240 - 180 * (row["asked_per_minute"] / 60) / max(*per_second, row["asked_per_minute"] / 60 * 1.5)
        parts.append(
            f'<line x1="370" x2="690" y1="{level:.1f}" y2="{level:.1f}" stroke="#c1121f" stroke-dasharray="4 3"/>'
        )
        parts.append(
            f'<text x="370" y="258">{row["ratio"] * 100:.1f} % of the rate, at most {row["most_in_any_minute"]} in any minute</text>'
        )
    return "\n".join([*parts, "</svg>"]) + "\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--results", type=Path, default=Path("bench/results"))
    given = parser.parse_args()
    write(given.results, asyncio.run(run(given.only)))
