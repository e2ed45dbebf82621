"""Sees to the jobs that wait for others, as soon as those have ended.

pg-boss makes a waiting job ready at the next pass of a supervisor, every five seconds. A job that one of our workers
completes makes them ready at once. If a job fails for good, was cancelled or deleted, pg-boss leaves those that wait
for it blocked. The jobs of chains and chords fail then instead. They stay blocked while they are failed: if an operator
retries the first job and then the next ones, the chain goes on.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from jobwire.backends.pgboss.connection.rows import Row
from jobwire.backends.pgboss.connection.store import Store
from jobwire.backends.pgboss.connection.values import plain_list, text, text_list
from jobwire.backends.pgboss.queues import Queues
from jobwire.boundary import RESULTS_KEY
from jobwire.errors import JobwireError
from jobwire.model import JobKey

_log = logging.getLogger("jobwire.pgboss")


class Dependents:
    """The jobs of one store that wait for others."""

    def __init__(self, store: Store, queues: Queues) -> None:
        self._store = store
        self._queues = queues

    @property
    def possible(self) -> bool:
        """True if the schema has dependencies between jobs."""
        return self._store.layout.has("job_dependency")

    async def first_ended(self, queue: str, completed: Sequence[str], failed: Sequence[str]) -> None:
        """Makes those ready that waited for the completed jobs, and fails those that waited for the failed ones.

        An error is only logged, since the jobs themselves have ended. The next passes do what is left."""
        try:
            if completed:
                values = {
                    "queue": text(queue), "ids": plain_list(completed), "own_channel": self._store.own_channel,
                }  # fmt: skip
                await self._store.ask("unblock", values, features=("of_these",))
            if failed:
                await self._fail_after([JobKey(queue, job_id) for job_id in failed])
        except JobwireError as error:
            _log.warning(
                "could not see to the jobs that wait for jobs of queue %s; the next pass does: %s", queue, error
            )

    async def fail_doomed(self, queue: str) -> int:
        """Fails the jobs of a queue that can never become ready, whichever client failed or deleted the first ones.
        Returns their number, and that of jobs that waited for them."""
        row = await self._queues.find(queue)
        if row is None:
            return 0
        values = {"queue": text(queue), "mark": text(RESULTS_KEY)}
        failed = _keys(await self._store.ask("fail_dependents", values, table=row.table))
        return len(failed) + await self._fail_after(failed)

    async def _fail_after(self, failed: list[JobKey]) -> int:
        """Fails the jobs that wait for these, then those that wait for them, and so on. Returns their number."""
        count = 0
        while failed:
            values = {
                "names": text_list([key.queue for key in failed]), "ids": plain_list([key.id for key in failed]),
                "mark": text(RESULTS_KEY),
            }  # fmt: skip
            failed = _keys(await self._store.ask("fail_dependents", values, features=("of_these",)))
            count += len(failed)
        return count


def _keys(rows: Sequence[Row]) -> list[JobKey]:
    return [JobKey(name, job_id) for name, job_id in rows]
