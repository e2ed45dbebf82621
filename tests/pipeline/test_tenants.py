"""The cost of tenants, by a value in the payload."""

from __future__ import annotations

import json
from typing import Any

import pytest

from jobwire.errors import InvalidOption
from jobwire.pipeline.history.tenants import OTHERS, costs, parse_tenants
from jobwire.pipeline.lake.schemas import ATTEMPTS, SILVER_JOBS
from jobwire.pipeline.privacy.path import parse_path
from jobwire.pipeline.privacy.rules import Privacy, parse_rules
from jobwire.pipeline.spark.session import for_little
from pipeline.literal_rows import BULLMQ, PGBOSS, frame

pytestmark = [pytest.mark.xdist_group("spark")]


def job(number: int, payload: Any, store: dict[str, str] = BULLMQ) -> dict[str, Any]:
    return {**store, "id": str(number), "payload": json.dumps(payload)}


def run(number: int, run_ms: int | None, outcome: str = "completed", store: dict[str, str] = BULLMQ) -> dict[str, Any]:
    return {**store, "job_id": str(number), "run_ms": run_ms, "outcome": outcome}


def test_each_tenant_has_its_runs_jobs_and_failures_and_the_cheapest_are_one_row(spark: Any) -> None:
    jobs = [
        job(1, {"who": {"the tenant": "acme"}}),
        job(2, {"who": {"the tenant": "acme"}}),
        job(3, {"who": {"the tenant": "bolt"}}),
        job(4, {"who": {"the tenant": 7}}),
        job(5, {"who": "nobody"}),
        job(6, {"who": {"the tenant": "zed"}}),
        job(1, {"who": {"the tenant": "bolt"}}, PGBOSS),
    ]
    runs = [
        run(1, 1000, "failed"),
        run(1, 2000),
        run(2, 500),
        run(3, 900),
        run(4, 100),
        run(5, 50),
        run(6, 10),
        run(7, None, "stalled"),  # its job is not known
        run(1, 70, store=PGBOSS),
    ]
    path = parse_path('$.who["the tenant"]', "path")
    with for_little(spark, 10):
        found = costs(frame(spark, ATTEMPTS, runs), frame(spark, SILVER_JOBS, jobs), path, ["emails"], most=3).collect()

    rows = {(row.store, row.tenant): (row.tenants, row.run_seconds, row.runs, row.jobs, row.failures) for row in found}
    assert rows == {
        (BULLMQ["store"], "acme"): (1, 3.5, 3, 2, 1),
        (BULLMQ["store"], "bolt"): (1, 0.9, 1, 1, 0),
        (BULLMQ["store"], "7"): (1, 0.1, 1, 1, 0),
        (BULLMQ["store"], OTHERS): (2, pytest.approx(0.06), 3, 3, 0),  # zed, and jobs without a tenant
        (PGBOSS["store"], "bolt"): (1, 0.07, 1, 1, 0),
    }


@pytest.mark.parametrize(
    ("path", "rules", "refusal"),
    [
        ("tenant", {}, "it begins with $"),
        ("$..tenant", {}, "must be one value of the payload"),
        ("$", {}, "must be one value of the payload"),
        ("result.tenant", {}, "must be one value of the payload"),
        (7, {}, "must be a path"),
        ("$.who.tenant", {"mail": {"$.who": "drop"}}, "is masked or dropped"),
        ("$.who.tenant", {"*": {"$..tenant": "mask"}}, "is masked or dropped"),
    ],
)
def test_a_path_that_gives_no_tenants_is_refused(path: Any, rules: Any, refusal: str) -> None:
    with pytest.raises(InvalidOption, match=r"tenants\.mail") as refused:
        parse_tenants({"mail": path}, parse_rules(rules, None))
    assert refusal in str(refused.value)


def test_a_hashed_or_kept_tenant_is_still_one() -> None:
    rules = parse_rules({"mail": {"$": "drop", "$.a": "hash", "$.b.c": "keep"}}, "a key of many characters")
    for path in ("$.a", "$.b.c"):
        assert parse_tenants({"mail": path}, rules).of_queue("mail") is not None
    named = parse_tenants({"*": "$.a", "mail*": "$.b"}, Privacy())
    assert getattr(named.of_queue("mails"), "text", None) == "$.b"
