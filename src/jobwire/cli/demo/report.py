"""The result of a demo, for people and for programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.console import Console
from rich.text import Text

from jobwire.cli.demo.demo_campaign import DemoCampaign
from jobwire.cli.demo.demo_store import DemoStore
from jobwire.cli.demo.histogram import milliseconds
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
class StoreReport:
    protocol: str
    server: str
    url: str
    queues: tuple[QueueReport, ...]

    def total(self, what: str) -> int:
        return sum(getattr(queue, what) for queue in self.queues)


@dataclass(frozen=True, slots=True)
class CampaignReport:
    """The result of the campaign. The database counts all of it."""

    name: str
    status: str
    messages: int
    sent: int
    failed: int
    rate: int
    outbox: str

    @classmethod
    def of(cls, campaign: DemoCampaign | None) -> CampaignReport | None:
        state = None if campaign is None else campaign.state
        if campaign is None or state is None:
            return None
        return cls(
            state.name, state.status.value, state.total_jobs, state.sent, state.failed, state.delivery_rate,
            display(campaign.outbox),
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Report:
    stores: tuple[StoreReport, ...]
    seconds: float
    interrupted: bool
    campaign: CampaignReport | None = None

    @classmethod
    def of(
        cls, stores: Sequence[DemoStore], seconds: float, interrupted: bool, campaign: DemoCampaign | None = None
    ) -> Report:
        reports = tuple(_store_report(store) for store in stores)
        return cls(reports, seconds, interrupted, CampaignReport.of(campaign))

    @property
    def nothing_lost(self) -> bool:
        """True if every acknowledged job was found again, on every queue."""
        return all(queue.lost == 0 for store in self.stores for queue in store.queues)

    @property
    def good(self) -> bool:
        """True if no job is lost and, unless the demo was interrupted, no job is left."""
        if self.interrupted or not self.nothing_lost:
            return self.nothing_lost
        ended = self.campaign is None or self.campaign.sent + self.campaign.failed == self.campaign.messages
        return ended and not any(store.total("left") for store in self.stores)

    def record(self) -> dict[str, Any]:
        return {**asdict(self), "nothing_lost": self.nothing_lost}

    def show(self, console: Console) -> None:
        for store in self.stores:
            _show_store(console, store, self.seconds)
        if self.campaign is not None:
            _show_campaign(console, self.campaign)
        console.print()


def _store_report(store: DemoStore) -> StoreReport:
    return StoreReport(
        store.protocol,
        store.server,
        store.url,
        tuple(
            QueueReport(
                measured.queue.name,
                measured.meter.added,
                measured.meter.stored_completed,
                measured.meter.stored_failed,
                measured.meter.left,
                measured.meter.retried,
                measured.meter.waits.percentile(0.50),
                measured.meter.waits.percentile(0.95),
                measured.meter.runs.percentile(0.50),
                measured.meter.runs.percentile(0.95),
                measured.meter.retried_job,
            )
            for measured in store.queues
        ),
    )


def _show_store(console: Console, store: StoreReport, seconds: float) -> None:
    added, completed, failed, left = (store.total(what) for what in ("added", "completed", "failed", "left"))
    console.print()
    console.print(Text(f"{store.protocol} on {store.server}", style="bold"))
    speed = (completed + failed) / seconds if seconds else 0.0
    console.print(
        f"  {counted(added, 'job')} added and {completed + failed:,} finished in {seconds:.1f} s, {speed:,.0f} a second"
    )
    retried = store.total("retried")
    again = counted(retried, "run", " failed and was tried again", " failed and were tried again")
    console.print(f"  {again}; {counted(failed, 'job')} failed for good (some are made to)")
    for queue in store.queues:
        if queue.wait_p50 is not None and queue.wait_p95 is not None:
            half, most = milliseconds(queue.wait_p50), milliseconds(queue.wait_p95)
            console.print(f"  {queue.queue}: half of the jobs had a worker within {half} ms, 95 % within {most} ms")
    if left:
        console.print(
            Text(f"  {counted(left, 'job', ' was', ' were')} still to be done when the demo ended", style="yellow")
        )
    if all(queue.lost == 0 for queue in store.queues):
        console.print(Text.assemble(("  ✓ nothing lost: ", "green"), _equation("=", added, completed, failed, left)))
        return
    for queue in store.queues:
        if queue.lost:
            verdict = f"{counted(abs(queue.lost), 'job')} {'missing' if queue.lost > 0 else 'too many'}"
            equation = _equation("≠", queue.added, queue.completed, queue.failed, queue.left)
            console.print(Text.assemble((f"  ✗ {queue.queue}, {verdict}: ", "red"), equation))


def _show_campaign(console: Console, campaign: CampaignReport) -> None:
    console.print()
    console.print(Text(f"A campaign at {campaign.rate:,} messages a minute", style="bold"))
    console.print(
        f"  {campaign.name} is {campaign.status}: {counted(campaign.messages, 'message')}, {campaign.sent:,} sent to"
        f" {campaign.outbox}, {campaign.failed:,} refused by their channels (some are made to)"
    )


def _equation(sign: str, added: int, completed: int, failed: int, left: int) -> str:
    return f"{added:,} added {sign} {completed:,} completed + {failed:,} failed + {left:,} left"
