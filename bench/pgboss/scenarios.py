"""What is measured."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Scenario:
    """One kind of work. Each contender fills its own tables before the clock of a drain starts."""

    name: str
    title: str
    kind: str
    jobs: int
    concurrency: int = 1


def scenarios(scale: float = 1.0) -> list[Scenario]:
    """All of them; a scale below 1 makes the work smaller."""

    def jobs(full: int) -> int:
        return max(100, int(full * scale))

    return [
        Scenario("send", "send one by one", "send", jobs(2000)),
        Scenario("send_concurrent", "send, 1,000 callers at once", "send_concurrent", 1000),
        Scenario("bulk", "bulk send, 1,000 a call", "bulk", jobs(20_000)),
        Scenario("drain_1", "no-op jobs, concurrency 1", "drain", jobs(1000), 1),
        Scenario("drain_10", "no-op jobs, concurrency 10", "drain", jobs(20_000), 10),
        Scenario("drain_100", "no-op jobs, concurrency 100", "drain", jobs(30_000), 100),
        Scenario("latency", "send to handler start, idle worker", "latency", jobs(200)),
    ]
