"""Jobs that wait for the results of others, by the flows of the protocol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jobwire.boundary import Added, FlowNode, Flows
from jobwire.model import JobKey


class FlowDependencies:
    """Implements Dependencies for a protocol that has flows. A job's children keep their results with it."""

    def __init__(self, flows: Flows) -> None:
        self._flows = flows

    def check_queues(self, queues: Sequence[str]) -> None:
        self._flows.check_flow(queues)

    async def add_trees(self, roots: Sequence[FlowNode]) -> Sequence[Added]:
        return await self._flows.add_flow(roots)

    async def results(self, queue: str, job_id: str) -> Mapping[JobKey, Any]:
        return (await self._flows.children(queue, job_id)).values
