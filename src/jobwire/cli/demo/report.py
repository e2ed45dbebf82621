"""The result of a demo, for people and for programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from jobwire.cli.demo.histogram import milliseconds
from jobwire.cli.demo.station import Station
from jobwire.cli.session import display
from jobwire.counted import counted


@dataclass(frozen=True, slots=True)
class QueueReport:
    """The result of one queue. `added` counts acknowledged adds. The server counts the three below, at the end."""

    queue: str
    added: int
    completed: int
    failed: int
    left: int
    retried: int
    wait_p50: float | None
    wait_p95: float | None
    run_p50: float | None
    run_p95: float | None
    retried_job: str | None = None
    """The id of a job that failed at first, as an example for `jobwire job`."""

    @property
    def lost(self) -> int:
        return self.added - self.completed - self.failed - self.left


@dataclass(frozen=True, slots=True)
class StationReport:
    protocol: str
    store: str
    url: str
    queues: tuple[QueueReport, ...]

    def total(self, what: str) -> int:
        return sum(getattr(queue, what) for queue in self.queues)


@dataclass(frozen=True, slots=True)
class Report:
    stations: tuple[StationReport, ...]
    seconds: float
    interrupted: bool

    @classmethod
    def of(cls, stations: Sequence[Station], seconds: float, interrupted: bool) -> Report:
        return cls(tuple(_station(station) for station in stations), seconds, interrupted)

    @property
    def nothing_lost(self) -> bool:
        """True if every acknowledged job was found again, on every queue."""
        return all(queue.lost == 0 for station in self.stations for queue in station.queues)

    @property
    def good(self) -> bool:
        """True if no job is lost and, unless the demo was interrupted, no job is left."""
        return self.nothing_lost and (self.interrupted or not any(station.total("left") for station in self.stations))

    def record(self) -> dict[str, Any]:
        return {**asdict(self), "nothing_lost": self.nothing_lost}

    def show(self, console: Console, folder: Path, page: str | None = None) -> None:
        for station in self.stations:
            _show_station(console, station, self.seconds)
        console.print()
        if page is not None:
            console.print(Text("A report of all queues, made by Spark", style="bold"))
            console.print(Text(f"  {Path(page).absolute().as_uri()}", style="cyan"))
            console.print()
        console.print(Text("Try next", style="bold"))
        for purpose, command in self._next_steps():
            console.print(Text(f"  {purpose}:", style="dim"))
            console.print(Text(f"    {command}", style="cyan"))
        console.print(
            Text(
                f"The demo's data and its workers.log are in {display(folder)}; the next demo starts afresh.",
                style="dim",
            )
        )

    def _next_steps(self) -> Iterator[tuple[str, str]]:
        for station in self.stations[:1]:
            for queue in station.queues:
                if queue.failed:
                    yield "what failed, and why", f"jobwire jobs {queue.queue} --state failed --url {station.url}"
                if queue.retried_job is not None:
                    job = f"{queue.queue} {queue.retried_job}"
                    yield "a job that failed at first, with its log", f"jobwire job {job} --url {station.url}"
        yield "a queue and a worker of your own", "python examples/first.py"


def _station(station: Station) -> StationReport:
    return StationReport(
        station.protocol,
        station.store,
        station.url,
        tuple(
            QueueReport(
                line.queue.name,
                line.meter.added,
                line.meter.stored_completed,
                line.meter.stored_failed,
                line.meter.left,
                line.meter.retried,
                line.meter.waits.percentile(0.50),
                line.meter.waits.percentile(0.95),
                line.meter.runs.percentile(0.50),
                line.meter.runs.percentile(0.95),
                line.meter.retried_job,
            )
            for line in station.lines
        ),
    )


def _show_station(console: Console, station: StationReport, seconds: float) -> None:
    added, completed, failed, left = (station.total(what) for what in ("added", "completed", "failed", "left"))
    console.print()
    console.print(Text(f"{station.protocol} on {station.store}", style="bold"))
    pace = (completed + failed) / seconds if seconds else 0.0
    console.print(
        f"  {counted(added, 'job')} added and {completed + failed:,} finished in {seconds:.1f} s, {pace:,.0f} a second"
    )
    retried = station.total("retried")
    again = counted(retried, "run", " failed and was tried again", " failed and were tried again")
    console.print(f"  {again}; {counted(failed, 'job')} failed for good (some are made to)")
    for queue in station.queues:
        if queue.wait_p50 is not None and queue.wait_p95 is not None:
            half, most = milliseconds(queue.wait_p50), milliseconds(queue.wait_p95)
            console.print(f"  {queue.queue}: half of the jobs had a worker within {half} ms, 95 % within {most} ms")
    if left:
        console.print(
            Text(f"  {counted(left, 'job', ' was', ' were')} still to be done when the demo ended", style="yellow")
        )
    if all(queue.lost == 0 for queue in station.queues):
        console.print(Text.assemble(("  ✓ nothing lost: ", "green"), _equation("=", added, completed, failed, left)))
        return
    for queue in station.queues:
        if queue.lost:
            verdict = f"{counted(abs(queue.lost), 'job')} {'missing' if queue.lost > 0 else 'too many'}"
            equation = _equation("≠", queue.added, queue.completed, queue.failed, queue.left)
            console.print(Text.assemble((f"  ✗ {queue.queue}, {verdict}: ", "red"), equation))


def _equation(sign: str, added: int, completed: int, failed: int, left: int) -> str:
    return f"{added:,} added {sign} {completed:,} completed + {failed:,} failed + {left:,} left"
