"""The short version of every fault, on every store that has the notion. `make faults` runs the long one."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from faults.conftest import MakeStore
from faults.inject import FAULTS
from faults.run import Plan, run
from faults.stores import Store

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

CASES = [
    pytest.param(
        *(fault.stores[protocol], name),
        id=f"{protocol}-{name}",
        marks=pytest.mark.xdist_group(f"faults-{fault.stores[protocol].__name__}"),
    )
    for name, fault in FAULTS.items()
    for protocol in fault.protocols
]


@pytest.mark.parametrize(("kind", "fault"), CASES)
async def test_nothing_acknowledged_is_lost_or_ends_twice(
    fault_store: MakeStore, unique: str, tmp_path: Path, kind: type[Store], fault: str
) -> None:
    store, nursery = fault_store(kind, unique)
    plan = Plan(fault, random.randrange(10**6), short=True)
    print(f"seed {plan.seed}; ledger and logs in {tmp_path}")
    try:
        report = await run(store, nursery, tmp_path, plan)
    finally:
        store.remove()
    assert report.violations == ()
    assert report.figures.acknowledged > 0
