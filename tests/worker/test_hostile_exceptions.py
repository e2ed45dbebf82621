"""Exceptions that break the code which describes them: the run fails, is logged, and its slot is free again."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NoReturn

import pytest

from awaiting import eventually
from jobwire import Connection, JobFailed, Queue, Worker
from jobwire.errors import shown
from jobwire.worker import handlers
from worker.hostile import Meta


class Nameless(Exception, metaclass=Meta): ...


class NoTruth(Exception):
    def __bool__(self) -> bool:
        raise RuntimeError("neither true nor false")


class NoClass(Exception):
    @property
    def __class__(self) -> Any:  # type: ignore[override]
        raise RuntimeError("no class")


class NoNotes(Exception):
    @property
    def __notes__(self) -> Any:
        raise SystemExit("no notes")


class NoTraceback(Exception):
    def __setattr__(self, name: str, value: Any) -> None:
        raise SystemExit(name)


class Exiting:
    def __repr__(self) -> str:
        raise SystemExit("repr")


def _raise(error: BaseException, cause: BaseException | None = None) -> NoReturn:
    raise error from cause


ACTS: dict[str, tuple[str, Callable[[], Any]]] = {
    "a class without a name": ("Nameless", lambda: _raise(Nameless())),
    "a cause without a truth value": ("outer", lambda: _raise(ValueError("outer"), NoTruth())),
    "no class": ("no class here", lambda: _raise(NoClass("no class here"))),
    "notes that exit": ("noted", lambda: _raise(NoNotes("noted"))),
    "attributes that can't be set": ("fixed", lambda: _raise(NoTraceback("fixed"))),
    "an exit code whose repr exits": ("sys.exit", lambda: sys.exit(Exiting())),  # type: ignore[arg-type]
}


def plain(job: Any) -> Any:
    return "fine" if job.data == "good" else ACTS[job.data][1]()


async def coroutine(job: Any) -> Any:
    return plain(job)


@pytest.mark.parametrize("handler", [coroutine, plain])
async def test_an_exception_that_is_hard_to_describe_fails_its_run_and_frees_its_slot(
    queue: Queue, connection: Connection, caplog: pytest.LogCaptureFixture, handler: Any
) -> None:
    async with Worker("work", handler, connection) as worker:
        for act, (reason, _) in ACTS.items():
            job = await queue.add(act)
            with pytest.raises(JobFailed, match=reason):
                await job.wait(5)
            assert any(getattr(record, "job", None) == job.id for record in caplog.records), act
        assert await (await queue.add("good")).wait(5) == "fine"
        await eventually(lambda: worker.busy == 0)
    assert (worker.stats.failed, worker.stats.completed) == (len(ACTS), 1)


async def test_a_fault_in_the_description_of_an_error_still_ends_the_run(
    queue: Queue, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(error: BaseException) -> NoReturn:
        raise SystemExit

    monkeypatch.setattr(handlers, "message_of", broken)
    async with Worker("work", plain, connection):
        with pytest.raises(JobFailed, match="an exception that can't be shown"):
            await (await queue.add("no class")).wait(5)
        assert await (await queue.add("good")).wait(5) == "fine"


def test_a_value_whose_repr_exits_is_shown_by_its_type() -> None:
    assert shown(Exiting()) == "<Exiting, whose repr() raises>"
