"""Any sequence of operations leaves the same store, whoever runs it.

JOBWIRE_DIFFERENTIAL_EXAMPLES=5000 tries that many sequences, other ones at every run; without it a few are tried, the
same each time.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from .differences import OF_BULLMQ_6, OF_SCENARIOS, Difference
from .notation import Scenario, Step
from .rig import Rig

EXAMPLES = os.environ.get("JOBWIRE_DIFFERENTIAL_EXAMPLES")
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("differential"), pytest.mark.timeout(3600 if EXAMPLES else 180)]

KEPT = st.sampled_from([True, False, 1, 2, {"age": 1}, {"age": 2, "count": 2}])
OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "priority": st.integers(0, 3),
        "delay": st.sampled_from([0, 50, 200]),
        "lifo": st.just(True),
        "attempts": st.integers(1, 3),
        "backoff": st.sampled_from([100, {"type": "exponential", "delay": 50}]),
        "removeOnComplete": KEPT,
        "removeOnFail": KEPT,
        "jobId": st.sampled_from(["x", "y"]),
        "keepLogs": st.just(1),
        "stackTraceLimit": st.integers(0, 1),
        "deduplication": st.sampled_from(
            [
                {"id": "k"},
                {"id": "k", "ttl": 60000},
                {"id": "k", "ttl": 60000, "extend": True},
                {"id": "k", "replace": True},
                {"id": "k", "ttl": 90000, "replace": True},
                {"id": "l", "ttl": 60000, "extend": True, "replace": True},
            ]
        ),
    },
)
# At most three options at a time: more of them hide each other.
FEW_OPTIONS = OPTIONS.map(lambda options: dict(list(options.items())[:3]))
ANY = st.integers(0, 5).map("#{}".format)
RESULTS = st.sampled_from([None, 7, "✓", {"a": [1]}])
RULES = {"s": {"every": 100}, "e": {"every": 1000, "limit": 2}, "c": {"pattern": "* * * * * *", "tz": "UTC"}}


FLAGS = ("failParentOnFailure", "continueParentOnFailure", "ignoreDependencyOnFailure", "removeDependencyOnFailure")
CHILD = st.fixed_dictionaries(
    {"parent": st.sampled_from([{"id": "p", "queue": "r"}, {"id": "o", "queue": "r"}])},
    optional={"jobId": st.sampled_from(["c", "x"]), "attempts": st.just(2), "removeOnComplete": KEPT},
)
FLAGGED = st.tuples(CHILD, st.sampled_from([None, *FLAGS])).map(
    lambda parts: {**parts[0], parts[1]: True} if parts[1] else parts[0]
)
PARENT = st.fixed_dictionaries(
    {"jobId": st.sampled_from(["p", "o"])}, optional={"priority": st.integers(0, 2), "delay": st.just(100)}
)
LEAF = st.fixed_dictionaries(
    {"jobId": st.sampled_from(["c", "x", "d"])}, optional={"priority": st.integers(0, 2), "delay": st.just(50)}
)
TREE = st.tuples(
    PARENT,
    st.lists(
        st.tuples(LEAF, st.sampled_from([None, *FLAGS])),
        min_size=1,
        max_size=2,
        unique_by=lambda pair: pair[0]["jobId"],
    ),
).map(
    lambda parts: {
        "name": "root",
        "queue": "r",
        "opts": parts[0],
        "children": [
            {
                "name": "leaf",
                "opts": {**opts, "jobId": f"{opts['jobId']}-{parts[0]['jobId']}", **({flag: True} if flag else {})},
            }
            for opts, flag in parts[1]
        ],
    }
)


def step(verb: str, *args: st.SearchStrategy[Any], queue: str = "q") -> st.SearchStrategy[Step]:
    return st.tuples(*args).map(lambda values: Step(verb, values, queue))


def often(times: int, one: st.SearchStrategy[Step]) -> list[st.SearchStrategy[Step]]:
    return [one] * times


STEPS = st.one_of(
    *often(5, step("add", st.just("n"), FEW_OPTIONS, st.integers(0, 9))),
    *often(5, step("claim")),
    *often(3, step("complete", ANY, RESULTS, st.sampled_from(["", "next"]))),
    *often(3, step("fail", ANY, st.just("boom"), st.sampled_from(["", "", "final"]), st.sampled_from(["", "next"]))),
    *often(2, step("tick", st.sampled_from([1, 50, 100, 1000]))),
    step("bulk", *[st.tuples(st.just("n"), FEW_OPTIONS, st.just(1)).map(list)] * 2),
    step("release", ANY),
    step("snooze", ANY, st.just(100)),
    step("pause"),
    step("resume"),
    step("promote", ANY),
    step("retry", ANY),
    step("remove", ANY),
    step("progress", ANY, RESULTS),
    step("log", ANY, st.just("line")),
    step("lose", ANY),
    step("recheck"),
    step("drain", st.sampled_from(["", "delayed"])),
    step("clean", st.sampled_from(["completed", "failed", "delayed"]), st.sampled_from([0, 100]), st.integers(0, 2)),
    step("counts"),
    # What a waiting worker does that is woken: the marker is gone, and must be set again by whoever brings work.
    *often(3, st.sampled_from("qr").map(lambda queue: Step("redis", ("DEL", f"bull:{queue}:marker")))),
    step("data", ANY, RESULTS),
    step("priority", ANY, st.integers(0, 3), st.sampled_from(["", "front"])),
    step("delay", ANY, st.sampled_from([0, 50, 300])),
    step("clearlogs", ANY, st.integers(0, 1)),
    step("retryall", st.sampled_from(["failed", "completed"])),
    step("promoteall"),
    step("concurrency", st.sampled_from([1, 2, None])),
    step("rate", st.sampled_from([1, 3, None]), st.just(60000)),
    step("free", st.just("k")),
    *often(2, step("flow", TREE)),
    *often(2, step("add", st.just("parent"), PARENT, queue="r")),
    *often(3, step("add", st.just("child"), FLAGGED)),
    step("claim", queue="r"),
    step("complete", ANY, RESULTS, queue="r"),
    step("fail", ANY, st.just("boom"), queue="r"),
    step("remove", ANY, st.sampled_from(["", "alone"]), queue="r"),
    step("pause", queue="r"),
    step("recheck", queue="r"),
    st.sampled_from(sorted(RULES)).map(lambda key: Step("schedule", (key, RULES[key], {"name": "n"}))),
    step("unschedule", st.sampled_from(sorted(RULES))),
)
WORKERS = st.sampled_from(
    [
        {},
        {"name": "w"},
        {"maxStalledCount": 0},
        {"metrics": {"maxDataPoints": 2}},
        {"limiter": {"max": 2, "duration": 60000}},
        {"removeOnComplete": {"count": 1}, "removeOnFail": {"count": 0}},
    ]
)


def known(*names: str) -> list[Difference]:
    return [replace(OF_SCENARIOS[name], must_show=False) for name in names]


# Those that any sequence may meet by chance. The others need steps that are not among these.
KNOWN = known("no marker for a job that its own batch replaced", "words for a parent that can't complete")
KNOWN_WHEN_PAUSED = known("a paused queue with jobs is not drained")


sequences = settings(
    max_examples=int(EXAMPLES or 60),
    derandomize=EXAMPLES is None,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
    print_blob=False,
)


@sequences
@given(
    who=st.sampled_from(["jobwire alone", "our workers", "our producers"]),
    worker=WORKERS,
    steps=st.lists(STEPS, min_size=6, max_size=14),
)
def test_random_sequences_leave_the_store_as_bullmq_5_leaves_it(
    rig: Rig, fleets: dict[str, Rig], who: str, worker: dict[str, Any], steps: list[Step]
) -> None:
    steps = list(_without_known_quirks(steps))
    fleets.get(who, rig).run(Scenario(f"random, {who}", [Step("worker", (worker,)), *steps]), KNOWN)


@sequences
@given(worker=WORKERS, steps=st.lists(STEPS, min_size=6, max_size=14))
def test_random_sequences_differ_from_bullmq_6_in_what_is_known_only(
    rig_6: Rig, worker: dict[str, Any], steps: list[Step]
) -> None:
    steps = list(_without_quirks_of_6(list(_without_known_quirks(steps))))
    paused = KNOWN_WHEN_PAUSED if any(one.verb == "pause" for one in steps) else []
    rig_6.run(Scenario("random, beside 6", [Step("worker", (worker,)), *steps]), [*KNOWN, *paused, *OF_BULLMQ_6])


def _without_known_quirks(steps: list[Step]) -> Iterator[Step]:
    """Leave out what BullMQ 5.62 is known to do differently (differences.py): a drain beside a schedule, and a tree
    some of whose jobs are there already."""
    scheduled = any(one.verb == "schedule" for one in steps)
    trees = set[str]()
    for one in steps:
        if one.verb == "drain" and scheduled:
            continue
        if one.verb == "flow":
            root = one.args[0]["opts"]["jobId"]
            if root in trees:
                continue
            trees.add(root)
        yield one


def _without_quirks_of_6(steps: list[Step]) -> Iterator[Step]:
    """Leave out what BullMQ 6.7 is known to do differently (differences.py): a schedule put again by a cron rule, or
    while its job waits in a paused queue; a schedule's job whose data is changed; jobs run again that have a parent or
    a priority."""
    ranked = any("priority" in str(one) for one in steps)
    related = any("parent" in str(one) or one.verb == "flow" for one in steps)
    paused = False
    scheduled = set[str]()
    for one in steps:
        if one.queue == "q" and one.verb in ("pause", "resume"):
            paused = one.verb == "pause"
        if (one.verb == "retry" and ranked) or (one.verb == "retryall" and (ranked or related)):
            continue
        if one.verb == "data" and scheduled:
            continue
        if one.verb == "schedule":
            if one.args[0] in scheduled and (paused or "pattern" in one.args[1]):
                continue
            scheduled.add(one.args[0])
        yield one
