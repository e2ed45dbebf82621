"""Makes the job that a moved job becomes in the target, from what the survey has found out about it."""

from __future__ import annotations

import warnings
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, NamedTuple

from jobwire import codec
from jobwire.backoff import Backoff
from jobwire.boundary import Backend, PreparedJob
from jobwire.errors import JobwireError
from jobwire.options import Keep, NewJob, Unique
from jobwire.pipeline.stores.dialect import Dialect
from jobwire.preparing import prepare

_REMEMBERED = 10_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class SortedOut(NamedTuple):
    """Options of a job: those that the target takes, the same as a JSON text, and the names of the others."""

    taken: Mapping[str, Any]
    text: str
    left: Sequence[str]


class OptionChecks:
    """Finds out which options of a job the target takes. Remembers the answers: most jobs of a queue have the same
    options."""

    def __init__(self, backend: Backend, queue: str) -> None:
        self._backend = backend
        self._queue = queue
        self._known: dict[tuple[str, Any], bool] = {}
        self._together: dict[tuple[tuple[str, Any], ...], SortedOut] = {}

    def sorted_out(self, options: Mapping[str, Any]) -> SortedOut:
        given = tuple(options.items())
        found = self._together.get(given)
        if found is None:
            taken = {name: value for name, value in given if self._takes(name, value)}
            left = [name for name, _ in given if name not in taken]
            found = SortedOut(taken, codec.dumps(_plain(taken)).decode(), left)
            if len(self._together) < _REMEMBERED:
                self._together[given] = found
        return found

    def _takes(self, name: str, value: Any) -> bool:
        known = self._known.get((name, value))
        if known is None:
            try:
                with large_keeps():
                    prepare(self._backend, self._queue, NewJob(None, **{name: value}), None)
                known = True
            except JobwireError:
                known = False
            if len(self._known) < _REMEMBERED:
                self._known[name, value] = known
        return known


@contextmanager
def large_keeps() -> Generator[None]:
    """Silences the warning about large counts inside the block: the producer chose them, not the operator of a move."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield


class Asked(NamedTuple):
    """The options that a moved job has in the target."""

    id: str
    name: str | None
    payload: bytes
    attempts: int | None
    unique_key: str | None
    created_at: datetime | None
    due: datetime | None
    """None: it is ready."""
    options: Mapping[str, Any]
    priority: int | None = None


def moved_job(backend: Backend, dialect: Dialect, queue: str, asked: Asked) -> PreparedJob:
    """Returns the job as it will be written. Its data is there in encoded form only."""
    new = NewJob(
        None,
        asked.name,
        asked.id,
        asked.priority,
        attempts=asked.attempts,
        unique=Unique(asked.unique_key) if asked.unique_key else None,
        **dialect.times(asked.created_at, asked.due),
        **asked.options,
    )
    return prepare(backend, queue, new, None, data=asked.payload)


def moment(microseconds: int) -> datetime:
    """Returns the time so many microseconds after 1970. Exact, unlike a division."""
    return _EPOCH + timedelta(microseconds=microseconds)


def _plain(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: asdict(value) if isinstance(value, (Backoff, Keep)) else value for name, value in options.items()}


@lru_cache(maxsize=2048)
def options_of(text: str) -> Mapping[str, Any]:
    """Returns the options in the column `options`, as keywords of NewJob."""
    rich: dict[str, Any] = codec.loads(text)
    if "backoff" in rich:
        rich["backoff"] = Backoff(**rich["backoff"])
    for name in ("keep_completed", "keep_failed"):
        if isinstance(rich.get(name), dict):
            with large_keeps():
                rich[name] = Keep(**rich[name])
    return rich
