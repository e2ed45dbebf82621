"""The index against the list, in random order of what we and peers do: every job is claimed once, none is lost."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from jobwire import NewJob, Target
from jobwire.boundary import Completed, Failed, Released
from jobwire.model import State

TARGETS = [
    None,
    None,
    Target(stack=("py",)),
    Target(stack=("go",)),
    Target(server="w-py"),
    Target(capabilities=("a", "b")),
]


class Chaos:
    """Does one thing after another, and keeps a ledger of what was added and what was finished."""

    def __init__(self, seed, queue, peer, consume) -> None:
        self.rng = random.Random(seed)
        self.queue, self.peer = queue, peer
        self.ours = [consume("w-py", stack="py"), consume("w-go", stack="go", capabilities=["a"])]
        self.theirs = [peer.fellow("p-py", stack="py"), peer.fellow("p-go", stack="go", can=("b",))]
        self.added: set[str] = set()
        self.finished: Counter[str] = Counter()

    async def step(self) -> None:
        acts = (
            self.add,
            self.add,
            self.dispatch,
            self.dispatch_many,
            self.claim,
            self.claim,
            self.peer_claims,
            self.look,
        )
        await self.rng.choice(acts)()

    async def add(self) -> None:
        jobs = [
            NewJob(n, target=self.rng.choice(TARGETS), priority=self.rng.choice([None, None, 9]), attempts=3)
            for n in range(self.rng.randint(1, 40))
        ]
        self.added |= {job.id for job in await self.queue.add_many(jobs)}

    async def dispatch(self) -> None:
        target = self.rng.choice([{}, {"stack": ["py"]}, {"server": "w-go"}])
        self.added.add(await self.peer.dispatch("mail", target=target, priority=self.rng.choice([5, 8])))

    async def dispatch_many(self) -> None:
        for _ in range(self.rng.choice([3, 30, 260])):
            await self.dispatch()

    async def claim(self) -> None:
        consumer = self.rng.choice(self.ours)
        for claim in (await consumer.settle([], self.rng.randint(1, 30))).claims:
            outcome = self.rng.choice(
                [Completed(claim, b"1"), Completed(claim, b"1"), Released(claim), Failed(claim, "no")]
            )
            [verdict] = (await consumer.settle([outcome], 0)).verdicts
            assert verdict.value != "lost"
            if verdict.value in ("completed", "failed"):
                self.finished[claim.job.id] += 1

    async def peer_claims(self) -> None:
        fellow = self.rng.choice(self.theirs)
        for _ in range(self.rng.randint(1, 10)):
            if job := await fellow.claim():
                assert await fellow.finish(job)
                self.finished[job["jobId"]] += 1

    async def look(self) -> None:
        counts = await self.queue.counts()
        listed = await self.peer.redis.lrange(self.peer.key("jobs", "waiting"), 0, -1)
        assert counts[State.WAITING] == len([one for one in listed if one != "x:gone"])
        assert counts[State.ACTIVE] == 0

    async def drain(self) -> None:
        """Everything that waits has someone among ours who may run it, but for the capability that nobody has."""
        idle = 0
        while idle < 3:
            idle += 1
            for consumer in self.ours:
                settled = await consumer.settle([], 100)
                if settled.claims or settled.next_in is not None:
                    idle = 0
                await consumer.settle([Completed(claim, b"1") for claim in settled.claims], 0)
                self.finished.update(claim.job.id for claim in settled.claims)


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (2, 10, 34))])
async def test_every_job_is_claimed_once_and_none_is_lost(queue, peer, consume, seed):
    chaos = Chaos(seed, queue, peer, consume)
    for _ in range(40):
        await chaos.step()
    await chaos.drain()
    assert set(chaos.finished.values()) == {1}
    assert set(chaos.finished) == chaos.added
    await chaos.look()
    assert [one for one in await peer.redis.lrange(peer.key("jobs", "waiting"), 0, -1) if one != "x:gone"] == []
    assert await peer.redis.get(peer.key("ratelimit", "concurrent", "mail")) == "0"
    leftovers = [key async for key in peer.redis.scan_iter(match=peer.key("x", "line:*"), count=100_000)]
    assert leftovers == []
