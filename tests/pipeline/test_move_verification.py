"""A move looks at its copies before it removes anything: whatever is not as it was stops it, each fault by its name."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest

from jobwire import urls
from jobwire.errors import JobwireError
from jobwire.pipeline.lake.lake import Lake
from jobwire.pipeline.move import move, verify_move
from pipeline.move_samples import Seen, filled, samples, seen

pytestmark = [pytest.mark.xdist_group("spark-movers"), pytest.mark.timeout(600)]

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
FIRST = "out of order"
"""The fault that is there when the move looks: a missing copy stops one in test_move.py."""


@dataclass(frozen=True)
class Stopped:
    """A move of 20 jobs that a fault in its copies has stopped; the fault is mended again."""

    here: str
    there: str
    lake: str
    refusal: str
    before: Seen


@pytest.fixture(scope="module")
def stopped(shared_place: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory, spark: Any) -> Stopped:
    here, there = shared_place("bullmq"), shared_place("pgboss")
    lake = str(tmp_path_factory.mktemp("stopped") / "lake")
    filled(here, "mail", samples("bullmq", 20))
    before = seen(here, "mail")

    def meddle(stage: str, done: int, total: int | None) -> None:
        if stage == "verify" and done == 0:
            changed(there, "CREATE TABLE {schema}.sound AS TABLE {schema}.job")
            assert changed(there, FAULTS[FIRST]) == CHANGED[FIRST]

    with pytest.raises(JobwireError) as raised:
        move(spark, Lake(lake), here, there, "mail", progress=meddle)
    mended(there)
    return Stopped(here, there, lake, str(raised.value), before)


def test_a_copy_that_is_not_as_it_was_stops_the_move_and_the_source_keeps_its_jobs(stopped: Stopped) -> None:
    expected = rf"^of 20 jobs copied to \S+: 1 {FIRST}; the source still has them all"
    assert re.match(expected, stopped.refusal), stopped.refusal
    assert seen(stopped.here, "mail") == stopped.before


def test_a_copy_that_was_mended_is_sound(stopped: Stopped, spark: Any) -> None:
    compared = verify_move(spark, Lake(stopped.lake), stopped.here, stopped.there, "mail")

    assert (compared.sound, compared.equal, compared.faults) == (True, 20, [])
    assert compared.checksum_found == compared.checksum_expected


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_of_a_copy_has_its_own_refusal(fault: str, stopped: Stopped, spark: Any) -> None:
    assert changed(stopped.there, FAULTS[fault]) == CHANGED[fault]
    try:
        compared = verify_move(spark, Lake(stopped.lake), stopped.here, stopped.there, "mail")
    finally:
        mended(stopped.there)

    # A move that is not sound is stopped with its faults: see the first test.
    assert not compared.sound
    assert compared.faults == [f"1 {fault}"]
    assert compared.checksum_found != compared.checksum_expected


def test_copies_that_a_worker_of_the_target_has_begun_are_not_missing(
    place: Callable[[str], str], lake: str, spark: Any
) -> None:
    here, there = place("bullmq"), place("pgboss")
    filled(here, "mail", samples("bullmq", 20))
    before = seen(here, "mail")

    def meddle(stage: str, done: int, total: int | None) -> None:
        if stage == "verify" and done == 0:
            taken = f"UPDATE {{schema}}.job SET state = 'active', started_on = now() WHERE id IN ({READY} LIMIT 3)"
            assert changed(there, taken) == 3

    result = move(spark, Lake(lake), here, there, "mail", progress=meddle)

    compared = result.verified
    assert (compared.sound, compared.equal, compared.begun, result.moved) == (True, 17, 3, 20)
    assert compared.checksum_expected == compared.checksum_found
    assert seen(there, "mail") == Seen(before.ready[3:], before.due)
    assert seen(here, "mail") == Seen([], {})


def mended(url: str) -> None:
    """Puts the copies back as they were."""
    changed(url, "DELETE FROM {schema}.job")
    assert changed(url, "INSERT INTO {schema}.job SELECT * FROM {schema}.sound") == 20


def changed(url: str, statement: str) -> int:
    """Runs the statement in the schema of a pg-boss URL. Returns the number of rows that it touched."""
    address = urls.parse(url)
    with psycopg.connect(address.driver_url, autocommit=True) as connection:
        return connection.execute(statement.format(schema=address.options["schema"]).encode()).rowcount
