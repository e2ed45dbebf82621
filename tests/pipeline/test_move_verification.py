"""A move looks at its copies before it removes anything: whatever is not as it was stops it, each fault by its name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from jobwire import urls
from jobwire.errors import JobwireError
from jobwire.pipeline.lake.lake import Lake
from jobwire.pipeline.move import move, verify_move
from pipeline.move_samples import filled, samples, seen

pytestmark = pytest.mark.xdist_group("spark")

READY = "SELECT id FROM {schema}.job WHERE start_after <= now() ORDER BY priority DESC, created_on, id"
FAULTS = {
    "with another payload": f"UPDATE {{schema}}.job SET data = '[0]' WHERE id IN ({READY} LIMIT 1 OFFSET 3)",
    "with another due time": "UPDATE {schema}.job SET start_after = start_after + interval '5 ms' WHERE id = "
    "(SELECT id FROM {schema}.job WHERE start_after > now() ORDER BY start_after LIMIT 1)",
    "out of order": f"UPDATE {{schema}}.job a SET created_on = b.created_on FROM {{schema}}.job b WHERE a.id <> b.id "
    f"AND a.priority = b.priority AND a.id IN ({READY} LIMIT 2) AND b.id IN ({READY} LIMIT 2)",
    "missing": f"DELETE FROM {{schema}}.job WHERE id IN ({READY} LIMIT 1)",
}  # fmt: skip
CHANGED = {"with another payload": 1, "with another due time": 1, "out of order": 2, "missing": 1}
"""Rows that each statement touches: two are swapped."""


@pytest.mark.parametrize("fault", FAULTS)
def test_a_copy_that_is_not_as_it_was_stops_the_move_with_its_own_refusal(
    fault: str, place: Callable[[str], str], spark: Any, lake: str
) -> None:
    here, there = place("bullmq"), place("pgboss")
    filled(here, "mail", samples("bullmq", 20))
    before = seen(here, "mail")

    def meddle(stage: str, done: int, total: int | None) -> None:
        if stage == "verify" and done == 0:
            assert changed(there, FAULTS[fault]) == CHANGED[fault]

    with pytest.raises(JobwireError, match=rf"^of 20 jobs copied to \S+: 1 {fault}; the source still has them all"):
        move(spark, Lake(lake), here, there, "mail", progress=meddle)

    compared = verify_move(spark, Lake(lake), here, there, "mail")
    assert compared.checksum_found != compared.checksum_expected
    assert compared.faults == [f"1 {fault}"]
    assert seen(here, "mail") == before


def changed(url: str, statement: str) -> int:
    """Runs the statement in the schema of a pg-boss URL. Returns the number of rows that it touched."""
    address = urls.parse(url)
    with psycopg.connect(address.driver_url, autocommit=True) as connection:
        return connection.execute(statement.format(schema=address.options["schema"]).encode()).rowcount
