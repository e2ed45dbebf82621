"""What is measured."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Scenario:
    """One kind of work. `prefilled`: the jobs are in the queue before the clock starts, added by Node 5.62."""

    name: str
    title: str
    kind: str
    jobs: int
    concurrency: int = 1
    prefilled: bool = False

    @property
    def unit(self) -> str:
        return "ms" if self.kind == "latency" else "jobs/s"


def scenarios(scale: float = 1.0) -> list[Scenario]:
    """All of them; a scale below 1 makes the work smaller."""

    def jobs(full: int) -> int:
        return max(100, int(full * scale))

    return [
        Scenario("bulk_add", "bulk add, 1,000 a call", "bulk_add", jobs(10_000)),
        Scenario("concurrent_add", "add, 1,000 callers at once", "concurrent_add", 1000),
        *(
            Scenario(
                f"process_{width}", f"no-op jobs, concurrency {width}", "process", jobs(count), width, prefilled=True
            )
            for width, count in ((1, 2000), (10, 10_000), (100, 20_000))
        ),
        Scenario("latency", "add to handler start, idle worker", "latency", jobs(300)),
    ]
