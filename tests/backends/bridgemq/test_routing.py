"""Who may run which job: the table as data, asked of three who must agree: our rules, our claim, a spec-style claim."""

from __future__ import annotations

import pytest

from jobwire.backends.bridgemq.native.routing import PLAIN, Profile, Route, parse_definition, route_of
from jobwire.errors import InvalidOption
from jobwire.options import NewJob, Target

WORKER = {"stack": "node", "region": "us-east", "capabilities": ("email", "gpu")}

# target, then whether worker w1 may run it in mode any and in mode all
TABLE = [
    ({}, True, True),
    ({"stack": ["node"]}, True, True),
    ({"stack": ["py", "node"]}, True, True),
    ({"stack": ["py"]}, False, False),
    ({"stack": ["Node"]}, False, False),
    ({"capabilities": ["gpu", "x"]}, True, False),
    ({"capabilities": ["gpu", "email"]}, True, True),
    ({"capabilities": ["gpu"]}, True, True),
    ({"capabilities": ["x"]}, False, False),
    ({"region": ["eu", "us-east"]}, True, True),
    ({"region": ["eu"]}, False, False),
    ({"stack": ["node"], "capabilities": ["x"]}, False, False),
    ({"stack": ["node"], "region": ["eu"]}, False, False),
    ({"stack": ["node"], "capabilities": ["gpu", "x"], "region": ["us-east"]}, True, False),
    ({"stack": [], "capabilities": [], "region": []}, True, True),
    ({"server": "w1", "stack": ["py"]}, True, True),
    ({"server": "w1", "capabilities": ["x"]}, True, True),
    ({"server": "w2"}, False, False),
    ({"server": "w2", "stack": ["node"]}, False, False),
    ({"server": ""}, True, True),
    ({"server": "", "stack": ["py"]}, False, False),
    ({"server": None}, False, False),
]
CASES = [
    pytest.param({**target, **({"mode": mode} if mode != "default" else {})}, expected, id=f"{target}-{mode}")
    for target, in_any, in_all in TABLE
    for mode, expected in (("default", in_any), ("any", in_any), ("all", in_all), ("most", in_all))
]


@pytest.mark.parametrize(("target", "expected"), CASES)
async def test_the_routing_table_holds_for_all_three(peer, consume, claimed, target, expected):
    profile = Profile("w1", "node", frozenset({"email", "gpu"}), "us-east")
    assert route_of({"target": target}).admits(profile) is expected

    job_id = await peer.dispatch("mail", target=target)
    claims = await claimed(consume("w1", **WORKER))
    assert [claim.job.id for claim in claims] == ([job_id] if expected else [])

    other = await peer.dispatch("letter", target=target)
    spec_style = peer.fellow("w1", stack="node", region="us-east", can=("email", "gpu"))
    job = await spec_style.claim()
    assert (job["jobId"] if job else None) == (other if expected else None)


async def test_a_worker_without_capabilities_gets_only_jobs_that_ask_for_none(queue, consume, claimed):
    await queue.add("asks", target=Target(capabilities=("gpu",)))
    await queue.add("asks not")
    assert [claim.job.data for claim in await claimed(consume(), 2)] == ["asks not"]


async def test_a_target_written_by_us_is_read_by_a_spec_style_worker(queue, peer):
    added = await queue.add_many(
        [
            NewJob("gpu", target=Target(capabilities=("gpu", "tpu"), mode="all")),
            NewJob("server", target=Target(server="w2")),
            NewJob("stack", target=Target(stack=("node", "py"), region=("eu",))),
        ]
    )
    both = peer.fellow("w9", can=("gpu", "tpu"))
    w2 = peer.fellow("w2")
    python = peer.fellow("w3", stack="py", region="eu")
    assert [(await one.claim())["jobId"] for one in (both, w2, python)] == [job.id for job in added]
    assert [await one.claim() for one in (both, w2, python)] == [None, None, None]


async def test_routes_that_appear_later_reach_a_worker_that_is_at_work(queue, consume, claimed):
    worker = consume("w1", stack="py")
    assert await claimed(worker) == []
    for number in range(3):
        await queue.add(number, target=Target(stack=("py", f"other-{number}")))
        [claim] = await claimed(worker)
        assert claim.job.data == number


async def test_jobs_of_several_routes_come_in_the_order_of_the_list(queue, consume, claimed):
    targets = [
        None,
        Target(stack=("py",)),
        Target(server="w1"),
        None,
        Target(capabilities=("a",)),
        Target(stack=("py",)),
    ]
    await queue.add_many([NewJob(number, target=target) for number, target in enumerate(targets)])
    await queue.add("first", priority=9, target=Target(stack=("py",)))
    claims = await claimed(consume("w1", stack="py", capabilities=["a"]), 10)
    assert [claim.job.data for claim in claims] == ["first", 0, 1, 2, 3, 4, 5]


async def test_a_job_whose_target_was_changed_behind_our_back_is_not_run(queue, redis, namespace, consume, claimed):
    import json

    added = await queue.add("secret")
    key = f"{namespace}:jobs:data:{added.id}"
    document = json.loads(await redis.get(key))
    await redis.set(key, json.dumps({**document, "target": {"server": "vault"}}))
    assert await claimed(consume("w1"), 5) == []
    [claim] = await claimed(consume("vault"))
    assert claim.job.id == added.id


def test_a_route_survives_the_store():
    route = Route(stack=("a", "b"), region=("é",), mode="all", max_concurrent=3)
    assert parse_definition(route.definition) == route
    assert (Route().definition, Route().signature) == ("", PLAIN)


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"servr": "w1"}, "servr"),
        ({"capabilities": "gpu"}, "capabilities"),
        ({"stack": ""}, "stack"),
        ({"server_id": "active"}, "server_id"),
        ({"server_id": "heartbeat:x"}, "server_id"),
        ({"max_concurrent": -1}, "max_concurrent"),
    ],
)
def test_a_worker_option_that_makes_no_sense_is_refused(consume, options, field):
    with pytest.raises(InvalidOption) as refusal:
        consume(**options)
    assert refusal.value.field == field
