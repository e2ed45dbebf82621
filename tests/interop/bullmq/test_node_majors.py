"""The rig itself, without jobwire: what one Node major adds, the other works, as the tests beside this one expect."""

from __future__ import annotations

import pytest

from awaiting import eventually

from ..node_process import PeerError
from ..peer import NodeJob, NodeQueue, Peer


async def test_one_major_works_what_the_other_adds(both_majors: dict[str, Peer], unique: str) -> None:
    five, six = (NodeQueue(peer, unique, "letters") for peer in both_majors.values())
    job_id = await five.add({"progress": [7], "lines": ["one", "two"]})
    async with six.work("report", label="six") as worker:

        async def completed() -> NodeJob | None:
            job = await five.get(job_id)
            return job if job is not None and job.finished else None

        job = await eventually(completed)
        assert await worker.runs() == [job_id]
    assert (job.returnvalue, job.progress, job.logs, job.attemptsMade) == ({"by": "six"}, 7, ["one", "two"], 1)


async def test_an_error_of_node_arrives_with_its_words(both_majors: dict[str, Peer], unique: str) -> None:
    five = NodeQueue(both_majors["5"], unique, "letters")
    with pytest.raises(PeerError, match="no job 404"):
        await five.ask("promote", job="404")


async def test_a_killed_process_answers_no_more(jobwire_valkey, unique: str) -> None:
    with Peer("bullmq", jobwire_valkey.url) as victim:
        queue = NodeQueue(victim, unique, "letters")
        await queue.add()
        async with queue.work("crash"):
            with pytest.raises(PeerError, match="has ended"):
                await queue.ask("waitUntilFinished", job="1", ms=10_000)
    assert not victim.alive
