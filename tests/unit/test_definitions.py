"""Typos and functions that can't work are refused when they are given, with a suggestion."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from jobwire import (
    App,
    Backoff,
    Connection,
    Depends,
    FlowJob,
    InvalidOption,
    Keep,
    NewJob,
    Parent,
    Queue,
    Rate,
    Target,
    Unique,
    Worker,
    by,
    connect,
)  # fmt: skip

M = "memory:"


async def handler(job: Any) -> None: ...


async def generator() -> AsyncIterator[int]:
    yield 1


@contextlib.contextmanager
def plain_context() -> Iterator[int]:
    yield 1


class AsyncObserver:
    async def started(self, claim: Any) -> None: ...
    async def settled(self, outcome: Any, verdict: Any) -> None: ...


class NarrowObserver:
    def started(self) -> None: ...
    def settled(self) -> None: ...


class AsyncAdding:
    async def adding(self, new: Any) -> None: ...


def typo(function: Any, *args: Any, **given: Any) -> Callable[[], Any]:
    return lambda: function(*args, **given)


TYPOS: dict[str, Callable[[], Any]] = {
    "connect(); did you mean wait_for_store": typo(connect, M, wait_for_stor=1),
    "a Connection; did you mean client": typo(Connection, M, clent=1),
    "a Keep; did you mean count": typo(Keep, cuont=1),
    "a Unique; did you mean key": typo(Unique, keyy="a"),
    "a Parent; did you mean on_failure": typo(Parent, "1", "q", onFailure="fail"),
    "a Target; did you mean server": typo(Target, severs="a"),
    "a Rate; did you mean per": typo(Rate, 5, pr=1),
    "a Backoff; did you mean delay": typo(Backoff.fixed, dealy=1),
    "Depends(); did you mean scope": typo(Depends, generator, scop="job"),
    "by(); did you mean for_": typo(by, "x", fo=3),
}


@pytest.mark.parametrize("words", TYPOS)
def test_an_option_with_a_typo_is_refused_with_the_name_that_was_meant(words: str) -> None:
    with pytest.raises(InvalidOption) as refused:
        TYPOS[words]()
    assert f"is not an option of {words}" in str(refused.value)


@pytest.mark.parametrize(
    ("method", "option", "meant"),
    [("jobs", "limt", "limit"), ("claim", "tmeout", "timeout"), ("admin.clean", "olderthan", "older_than")],
)
async def test_so_is_one_of_a_method(method: str, option: str, meant: str, unique: str) -> None:
    async with Queue("q", f"memory:{unique}") as queue:
        found: Any = queue
        for name in method.split("."):
            found = getattr(found, name)
        with pytest.raises(InvalidOption, match=rf"is not an option of queue\.{method}; did you mean {meant}\?"):
            await found(**{option: 1})


BAD: dict[str, Callable[[], Any]] = {
    "observers[0].started: must be a plain": lambda: Worker("q", handler, M, observers=[AsyncObserver()]),  # type: ignore[list-item]
    "observers[0].started: must be an obj": lambda: Worker("q", handler, M, observers=[NarrowObserver()]),  # type: ignore[list-item]
    "lifespan: must be a function without": lambda: Worker("q", handler, M, lifespan=plain_context),  # type: ignore[arg-type]
    "trace: must be a plain function": lambda: Queue("q", M, trace=_no_headers),  # type: ignore[arg-type]
    "defaults: must be a dict": lambda: Queue("q", M, defaults=5),  # type: ignore[arg-type]
    "middleware[0].adding: must be a plain": lambda: App(M, middleware=[AsyncAdding()]),
    "middleware[0]: must be a coroutine": lambda: App(M, middleware=[handler]),
    "middleware: must be a list": lambda: App(M, middleware=5),  # type: ignore[arg-type]
    "unique.extend: must be True or False": lambda: Unique("k", ttl=1, extend="no"),  # type: ignore[arg-type]
    "unique.replace: must be True or False": lambda: Unique("k", replace=5),  # type: ignore[arg-type]
    "target.stack: must be a list of strings": lambda: Target(stack=5),  # type: ignore[arg-type]
    "extra: must be a dict": lambda: NewJob(1, extra=[]),  # type: ignore[arg-type]
    "attempts: must be at most 9007199254740991": lambda: NewJob(1, attempts=10**40),
    "children: must be a list of FlowJobs": lambda: FlowJob("q", 1, children=5),  # type: ignore[arg-type]
    "provider: must be a function whose": lambda: Depends(dict),
}


async def _no_headers() -> dict[str, str]:
    return {}


@pytest.mark.parametrize("words", BAD)
def test_what_can_not_work_is_refused_where_it_is_given(words: str) -> None:
    with pytest.raises(InvalidOption) as refused:
        BAD[words]()
    assert str(refused.value).startswith(words)


async def test_a_number_is_no_list_of_jobs_or_ids(unique: str) -> None:
    async with Queue("q", f"memory:{unique}") as queue:
        with pytest.raises(InvalidOption, match="jobs: must be a list of NewJobs"):
            await queue.add_many(5)  # type: ignore[arg-type]
        with pytest.raises(InvalidOption, match="job_ids: must be a list of ids"):
            await queue.admin.retry_many(5)  # type: ignore[arg-type]


async def test_a_lifespan_may_be_an_async_generator_in_a_worker_as_in_an_app(unique: str) -> None:
    seen: list[str] = []

    async def lifespan() -> AsyncIterator[None]:
        seen.append("entered")
        yield
        seen.append("left")

    async with Worker("q", handler, f"memory:{unique}", lifespan=lifespan):  # type: ignore[arg-type]
        pass
    assert seen == ["entered", "left"]
