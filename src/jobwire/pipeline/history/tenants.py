"""The cost of each tenant: run time, runs, jobs and failures by a value in the payload.

[pipeline.tenants]
emails = "$.tenant"
"*" = "$.customer.id"      # every other queue; * stands for any text
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, cast

from jobwire.errors import InvalidOption
from jobwire.pipeline.privacy.covering import MASK, Covered, cover
from jobwire.pipeline.privacy.path import PAYLOAD, Path, parse_path
from jobwire.pipeline.privacy.rules import Privacy

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from jobwire.pipeline.lake.lake import Lake

MOST = 50
"""Tenants of a queue that have a row of their own."""
NONE, OTHERS = "(none)", "(others)"
_KEY = ("store", "queue")


@dataclass(frozen=True)
class Tenants:
    """The paths of the tenant in the payloads of queues."""

    paths: tuple[tuple[str, Path], ...] = ()

    def of_queue(self, queue: str) -> Path | None:
        """Returns the path of the queue's own name, else of the longest pattern that it fits."""
        found = [(name, path) for name, path in self.paths if _covers(name, queue)]
        return max(found, key=lambda one: ("*" not in one[0], len(one[0])))[1] if found else None


@dataclass(frozen=True)
class TenantCost:
    """The runs of one tenant in one queue, within some time."""

    store: str
    queue: str
    tenant: str
    """The value in the payload. `(none)`: jobs without one; `(others)`: the tenants beyond the first 50."""
    tenants: int
    """1, or the number of tenants that the row stands for."""
    run_seconds: float
    runs: int
    jobs: int
    failures: int
    """Runs that failed."""


NO_TENANTS = Tenants()


def parse_tenants(section: Mapping[str, Any], privacy: Privacy, where: str = "tenants") -> Tenants:
    """Returns the paths of a table of queues. Refuses a path that does not stand for one value, and one whose value the
    rules of privacy mask or drop."""
    found: list[tuple[str, Path]] = []
    for queue, text in section.items():
        if not isinstance(text, str):
            raise InvalidOption(f"{where}.{queue}", text, "must be a path such as $.tenant")
        path = parse_path(text, f"{where}.{queue}")
        if path.document != PAYLOAD or not path.exact or not path.steps:
            raise InvalidOption(f"{where}.{queue}", text, "must be one value of the payload, such as $.customer.id")
        if not _is_kept(queue, path, privacy):
            raise InvalidOption(
                f"{where}.{queue}", text, "is masked or dropped by the rules of privacy: hash it instead"
            )
        found.append((queue, path))
    return Tenants(tuple(found))


def _is_kept(queue: str, path: Path, privacy: Privacy) -> bool:
    """Returns whether what the rules of privacy leave of tenants still distinguishes them."""
    rules = privacy.of_queue(queue)
    left: Any = "tenant"
    for step in reversed(path.steps):
        left = {step: left}
    left = left if rules is None else cover(left, PAYLOAD, rules, Covered())
    for step in path.steps:
        left = cast("dict[str, Any]", left).get(step) if isinstance(left, dict) else None
    return isinstance(left, str) and left != MASK


def tenant_costs(
    spark: SparkSession, lake: Lake, tenants: Tenants, since: date | None = None, until: date | None = None
) -> list[TenantCost]:
    """Returns the cost of the tenants of every queue with a path, of runs that started in [since, until), the dearest
    first."""
    pointer = lake.pointer("silver/attempts")
    days = [day for day in (pointer.parts if pointer else ()) if _within(day, since, until)]
    runs, jobs = lake.table(spark, "silver/attempts", days), lake.table(spark, "silver/jobs")
    found: list[TenantCost] = []
    queues = [row.queue for row in runs.select("queue").distinct().collect()]
    by_path: dict[Path, list[str]] = {}
    for queue in queues:
        if (path := tenants.of_queue(queue)) is not None:
            by_path.setdefault(path, []).append(queue)
    for path, names in by_path.items():
        found += [TenantCost(**row.asDict()) for row in costs(runs, jobs, path, names).collect()]
    return sorted(found, key=lambda one: (one.store, one.queue, one.tenant == OTHERS, -one.run_seconds, one.tenant))


def costs(runs: DataFrame, jobs: DataFrame, path: Path, queues: Sequence[str], most: int = MOST) -> DataFrame:
    """Returns a row for each of the dearest tenants of the queues, and one for all the others of a queue."""
    from pyspark.sql import Window  # noqa: PLC0415 an extra
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 an extra

    place = "$" + "".join(f"['{step}']" for step in path.steps)
    of_job = jobs.where(F.col("queue").isin(*queues)).select(
        *_KEY, F.col("id").alias("job_id"), F.coalesce(F.get_json_object("payload", place), F.lit(NONE)).alias("tenant")
    )
    each = (
        runs.where(F.col("queue").isin(*queues))
        .join(of_job, [*_KEY, "job_id"], "left")
        .groupBy(*_KEY, F.coalesce("tenant", F.lit(NONE)).alias("tenant"))
        .agg(
            F.coalesce(F.sum("run_ms") / 1000, F.lit(0.0)).alias("run_seconds"),
            F.count("*").alias("runs"),
            F.count_distinct("job_id").alias("jobs"),
            F.count_if(F.col("outcome") == "failed").alias("failures"),
        )
    )
    dearest = Window.partitionBy(*_KEY).orderBy(F.desc("run_seconds"), "tenant")
    named = F.when(F.row_number().over(dearest) <= most, F.col("tenant")).otherwise(OTHERS)
    sums = [F.sum(name).alias(name) for name in ("run_seconds", "runs", "jobs", "failures")]
    ranked = each.withColumn("tenant", named)
    return ranked.groupBy(*_KEY, "tenant").agg(F.count("*").alias("tenants"), *sums)


def _covers(pattern: str, queue: str) -> bool:
    # Brackets and question marks are parts of names here, not patterns.
    return fnmatchcase(queue, pattern.replace("[", "[[]").replace("?", "[?]"))


def _within(day: str, since: date | None, until: date | None) -> bool:
    at = date.fromisoformat(day)
    return (since is None or at >= since) and (until is None or at < until)
