"""The claimed job that the user's code gets, with the calls that write to it."""

from __future__ import annotations

from typing import Any, TypeVar

from jobwire import codec
from jobwire.boundary import Acted, Backend, Claim, Feature
from jobwire.checks import maybe_empty, whole
from jobwire.errors import JobNotFound
from jobwire.generics import In_co
from jobwire.model import Children, JobKey
from jobwire.options import DEFAULT_SIZE_LIMIT
from jobwire.running_job import Running

Part = TypeVar("Part")


class HeldJob(Running[In_co]):
    """A job with its claim. Its methods are those that handlers and programs with a loop of their own share."""

    __slots__ = ("_backend", "_claim")

    def __init__(self, claim: Claim, backend: Backend) -> None:
        super().__init__(claim.job)
        self._claim = claim
        self._backend = backend

    @property
    def token(self) -> str:
        """The token of this claim, different for each claim of a job. Other systems can use it as a fencing token."""
        return self._claim.token

    @property
    def claim(self) -> Claim:
        return self._claim

    async def update_progress(self, value: Any) -> None:
        """Publishes the job's progress: any JSON value, usually a number from 0 to 100."""
        progress = self._part(self._backend.progress, Feature.PROGRESS)
        encoded = codec.dumps(value, field="progress")
        self._expect(await progress.update_progress(self.queue, self.id, encoded))

    async def log(self, line: str, *, keep: int = 0) -> None:
        """Appends a line to the job's log and deletes all but the last `keep` lines (0: deletes none)."""
        logs = self._part(self._backend.logs, Feature.LOGS)
        kept, written = whole("keep", keep, minimum=0), maybe_empty("line", str(line))
        self._expect(await logs.log(self.queue, self.id, written, kept))

    async def update_data(self, data: Any) -> None:
        """Replaces the job's data for its next run. A handler with several steps can record which ones are done."""
        edits = self._part(self._backend.edits, Feature.EDITS)
        encoded = codec.dumps(data)
        codec.check_size(len(encoded), DEFAULT_SIZE_LIMIT)
        self._expect(await edits.update_data(self.queue, self.id, encoded))

    async def children(self) -> Children:
        """Returns the job's children, by what has become of them so far."""
        return await self._part(self._backend.flows, Feature.FLOWS).children(self.queue, self.id)

    async def children_values(self) -> dict[JobKey, Any]:
        """Returns the results of the children that have completed."""
        return dict((await self.children()).values)

    async def awaited_results(self) -> dict[JobKey, Any]:
        """Returns the results of the jobs that this one has waited for."""
        dependencies = self._part(self._backend.dependencies, Feature.DEPENDENCIES)
        return dict(await dependencies.results(self.queue, self.id))

    def require(self, feature: Feature) -> None:
        """Raises NotSupported if the job's protocol lacks the feature."""
        self._backend.capabilities.require(feature)

    def _part(self, found: Part | None, feature: Feature) -> Part:
        return self._backend.capabilities.part(found, feature)

    def _expect(self, acted: Acted) -> None:
        if acted is not Acted.DONE:
            raise JobNotFound(self.queue, self.id)
