"""Remembers failed attempts that another one follows. pg-boss overwrites their start, end and error with those of the
next attempt; the pipeline reads them from here.

They are side data, in a table that is made when a worker first asks for it, and are written in the transaction that
settles the attempt. Runs of workers that died are remembered when their jobs are recovered (`upkeep/recover.py`), those
of Node's workers are not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jobwire.backends.pgboss.connection.pipelined import Value
from jobwire.backends.pgboss.connection.store import Store
from jobwire.backends.pgboss.connection.values import number, text, text_list
from jobwire.boundary import ConsumerSettings, Failed

STATEMENT = "remember_attempts"


@dataclass(frozen=True, slots=True)
class Memory:
    """The wish of one worker to remember its attempts. `keep` is in seconds."""

    keep: float
    worker: str

    @classmethod
    def of(cls, keep: float | None, settings: ConsumerSettings) -> Memory | None:
        return None if keep is None else cls(keep, settings.name or settings.worker_id)

    async def make(self, store: Store) -> None:
        """Makes the table if it does not exist."""
        await store.need_side_table("attempt")

    def values(self, failed: Sequence[Failed]) -> dict[str, Value]:
        """Returns the values of the statement beside the fence."""
        kinds = [one.kind.replace("\x00", "") or None for one in failed]
        return {"keep": number(self.keep), "worker": text(self.worker), "kinds": text_list(kinds)}
