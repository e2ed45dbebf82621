"""What is measured."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Scenario:
    """One kind of work. A `work` scenario runs jobs that are in the queue before the clock starts."""

    name: str
    title: str
    operation: str
    jobs: int
    concurrency: int = 1
    seconds: float = 0.0
    """How long a job sleeps."""


def scenarios(scale: float = 1.0) -> list[Scenario]:
    """All of them; a scale below 1 makes the work smaller."""

    def jobs(full: int, width: int = 1) -> int:
        return max(3 * width, 30, int(full * scale))

    work = [
        Scenario(f"{name}_{width}", f"{title}, concurrency {width}", "work", jobs(full, width), width, seconds)
        for name, title, seconds in (("noop", "no-op jobs", 0.0), ("sleep", "1 ms jobs", 0.001))
        for width, full in ((1, 500), (10, 2000), (100, 5000))
    ]
    return [
        Scenario("add", "add, one by one", "add", jobs(500)),
        Scenario("bulk_add", "add many", "bulk_add", jobs(5000)),
        *work,
        Scenario("latency", "add to handler start, idle worker", "latency", jobs(100)),
    ]
