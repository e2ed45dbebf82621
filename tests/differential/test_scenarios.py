"""Every scenario leaves the same store, whoever runs it: compared after each step, with all answers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from .differences import OF_BULLMQ_6, OF_SCENARIOS, Difference
from .notation import Scenario, load, parse
from .rig import Diverged, Rig

SCENARIOS = load(Path(__file__).parent / "scenarios")
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("differential")]


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS.keys())
def test_leaves_the_store_as_bullmq_5_leaves_it(scenario: Scenario, rig: Rig) -> None:
    rig.run(scenario, [OF_SCENARIOS[name] for name in scenario.differences[5]])


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS.keys())
def test_differs_from_bullmq_6_in_what_is_known_only(scenario: Scenario, rig_6: Rig) -> None:
    named = [OF_SCENARIOS[name] for name in scenario.differences[6]]
    rig_6.run(scenario, [*named, *OF_BULLMQ_6])


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS.keys())
@pytest.mark.parametrize("swapped", ["our workers", "our producers"])
def test_a_fleet_of_both_leaves_the_store_as_bullmq_5_alone_leaves_it(
    scenario: Scenario, swapped: str, fleets: dict[str, Rig]
) -> None:
    """Whichever part of a running system is moved to jobwire, the store does not tell."""
    named = [replace(OF_SCENARIOS[name], must_show=False) for name in scenario.differences[5]]
    fleets[swapped].run(scenario, named)


@pytest.mark.parametrize("difference", OF_BULLMQ_6, ids=lambda difference: difference.name)
def test_every_known_difference_of_bullmq_6_is_one(difference: Difference, rig_6: Rig) -> None:
    scenario = SCENARIOS[difference.witness]
    others = [one for one in OF_BULLMQ_6 if one is not difference]
    with pytest.raises(Diverged):
        rig_6.run(scenario, others)


def test_no_known_difference_is_left_over() -> None:
    named = {name for scenario in SCENARIOS.values() for names in scenario.differences.values() for name in names}
    assert named == OF_SCENARIOS.keys()


def test_a_difference_is_told_with_the_step_after_which_it_showed(rig: Rig) -> None:
    steps = parse("== two sides\nadd a\nredis SET bull:q:1:logs x\nclaim")[0].steps

    class Forgetful:
        def run(self, clock: int, step: list[Any]) -> Any:
            return rig.ours.run(clock, [*step[:2], "other", *step[3:]] if step[0] == "add" else step)

    with pytest.raises(Diverged, match=r"(?s)add a\n.*name: peer 'a', jobwire 'other'.*-event added jobId 1 name a"):
        Rig(rig.peer, Forgetful(), rig.redis).run(Scenario("two sides", steps))
