"""Compositions of calls: chains, groups and chords.

    job = await chain(charge.s(order=7), ship.s(express=True), notify.s()).add()
    jobs = await group(resize.s(1), resize.s(2)).add()
    job = await chord([count.s(page) for page in pages], total.s()).add()

In a chain each step begins when the one before has completed, and gets its result: as the parameter that was given as
`previous`, or else as the one required parameter that was not given. A step that has all of its arguments only waits.
The calls of a group run side by side. A chord is a chain that begins with a group: its next step gets the list of
results, in the order of the group.

If a step fails for good, the steps after it fail too, so that the wait for the last job ends with JobFailed. The jobs
of a chain are added together or not at all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any, Generic, TypeVar, cast, overload

from jobwire import checks
from jobwire.boundary import Feature
from jobwire.errors import InvalidOption
from jobwire.generics import Out_co
from jobwire.model import Job
from jobwire.tasks.links import check_first, check_list_types, check_types, open_parameter
from jobwire.tasks.results import Source
from jobwire.tasks.task import Call
from jobwire.tasks.trees import Planned, add, check_in_chain, new_id

R = TypeVar("R")


class Chain(Generic[Out_co]):
    """Calls that run one after the other, perhaps after a group. Made by `chain` and `chord`. Its type is that
    of the last call's result."""

    def __init__(self, start: Group[Any] | None, calls: Sequence[Call[Any]]) -> None:
        self.start = start
        self.calls = tuple(calls)

    @property
    def last(self) -> Call[Out_co]:
        """The call whose result is that of the chain."""
        return self.calls[-1]

    async def add(self) -> Job[Out_co]:
        """Adds the jobs of all steps, all or nothing. Returns the last one, whose result is that of the chain."""
        [job] = await add([self.plan(None)])
        return job

    def plan(self, job_id: str | None) -> Planned:
        """Returns the plan of the last job, with those that it waits for below it."""
        below = [] if self.start is None else self.start.plan()
        planned: Planned | None = None
        for index, call in enumerate(self.calls):
            own = job_id if index == len(self.calls) - 1 else new_id()
            if planned is None and self.start is None:
                planned = Planned(call, id=own)
                continue
            source: Source = [one.key for one in below] if planned is None else planned.key
            parameter = open_parameter("", call)
            sources = {} if parameter is None else {parameter: source}
            planned = Planned(call, below if planned is None else [planned], sources, own, waits=True)
        return cast("Planned", planned)

    def __repr__(self) -> str:
        steps = [*([] if self.start is None else [repr(self.start)]), *(call.task.name for call in self.calls)]
        return f"<Chain {' → '.join(steps)}>"


class Group(Generic[Out_co]):
    """Calls and chains that run side by side. Made by `group`."""

    def __init__(self, members: Sequence[Call[Out_co] | Chain[Out_co]]) -> None:
        self.members = tuple(members)

    async def add(self) -> GroupJobs[Out_co]:
        """Adds the jobs of all members. All are checked before the first is written. A group with chains in it is added
        all or nothing. One of calls only is added queue by queue: if the store fails on the way, the jobs before that
        stay added."""
        return GroupJobs(await add([_planned(member, None) for member in self.members]))

    def plan(self) -> list[Planned]:
        """Returns the plans of the members, as the jobs that another one waits for."""
        return [_planned(member, new_id()) for member in self.members]

    @property
    def lasts(self) -> list[Call[Out_co]]:
        """The calls whose results are those of the group."""
        return [member if isinstance(member, Call) else member.last for member in self.members]

    def __repr__(self) -> str:
        return f"<Group of {len(self.members)}>"


class GroupJobs(Sequence[Job[Out_co]]):
    """The jobs of a group that has been added, in the order of its members."""

    def __init__(self, jobs: Iterable[Job[Out_co]]) -> None:
        self._jobs = list(jobs)

    @property
    def jobs(self) -> list[Job[Out_co]]:
        """The jobs, in the order of the members."""
        return list(self._jobs)

    async def wait(self, timeout: float | timedelta | None = None) -> list[Out_co]:
        """Waits until all jobs have completed, and returns their results in order. Raises JobFailed as soon as one has
        failed, or WaitTimeout. The timeout is for all of them together."""
        limit = checks.timeout(timeout)
        waits = [asyncio.ensure_future(job.wait(limit)) for job in self._jobs]
        if not waits:
            return []
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_EXCEPTION)
            for one in waits:
                if one.done() and one.exception() is not None:
                    one.result()
            return [one.result() for one in waits]
        finally:
            for one in waits:
                one.cancel()
            await asyncio.gather(*waits, return_exceptions=True)

    def __len__(self) -> int:
        return len(self._jobs)

    @overload
    def __getitem__(self, index: int) -> Job[Out_co]: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Job[Out_co]]: ...
    def __getitem__(self, index: int | slice) -> Job[Out_co] | Sequence[Job[Out_co]]:
        return self._jobs[index]

    def __repr__(self) -> str:
        return f"<GroupJobs of {len(self)}>"


First = Call[Any] | Chain[Any] | Group[Any]
"""The first step of a chain."""


@overload
def chain(only: Call[R] | Chain[R], /) -> Chain[R]: ...
@overload
def chain(a: First, last: Call[R], /) -> Chain[R]: ...
@overload
def chain(a: First, b: Call[Any], last: Call[R], /) -> Chain[R]: ...
@overload
def chain(a: First, b: Call[Any], c: Call[Any], last: Call[R], /) -> Chain[R]: ...
@overload
def chain(a: First, b: Call[Any], c: Call[Any], d: Call[Any], last: Call[R], /) -> Chain[R]: ...
@overload
def chain(a: First, b: Call[Any], c: Call[Any], d: Call[Any], e: Call[Any], last: Call[R], /) -> Chain[R]: ...
@overload
def chain(first: First, /, *others: Call[Any]) -> Chain[Any]: ...
def chain(*steps: Any) -> Chain[Any]:
    """Returns a chain of calls: each gets the result of the one before. It may begin with a group, whose results the
    next call gets as a list, or with another chain."""
    if not steps:
        raise InvalidOption("steps", (), "needs at least one call")
    first, *others = steps
    for index, step in enumerate(others, 1):
        _check_later(f"steps[{index}]", step)
    start: Group[Any] | None = None
    calls: list[Call[Any]] = others
    if isinstance(first, Group):
        start = cast("Group[Any]", first)
        if not calls:
            raise InvalidOption("steps", start, "needs a call after the group; add a group alone with group(…).add()")
    elif isinstance(first, Chain):
        inner = cast("Chain[Any]", first)
        start, calls = inner.start, [*inner.calls, *calls]
    else:
        calls = [_call("steps[0]", first), *calls]
        check_first("steps[0]", calls[0])
    made = Chain[Any](start, calls)
    _check_chain(made, len(steps) - len(calls))
    return made


def group(*members: Call[R] | Chain[R]) -> Group[R]:
    """Returns a group of calls and chains, which run side by side."""
    for index, member in enumerate(members):
        step = f"members[{index}]"
        if isinstance(member, Group):
            raise InvalidOption(step, member, "is a group: give its members to the outer one")
        if not isinstance(member, Chain):
            check_first(step, _call(step, member))
    made = Group(members)
    _check_store([last.task.app.connection for last in made.lasts])
    return made


def chord(members: Group[Any] | Iterable[Call[Any] | Chain[Any]], callback: Call[R]) -> Chain[R]:
    """Returns a chain of a group and one call, which gets the list of the group's results in the order of the group."""
    if isinstance(members, Call | Chain):
        raise InvalidOption(
            "members", members, "must be a group or a list of calls; chain(…) joins one call to another"
        )
    return chain(members if isinstance(members, Group) else group(*checks.items("members", members, "calls")), callback)


def _planned(member: Call[Any] | Chain[Any], job_id: str | None) -> Planned:
    return Planned(member, id=job_id) if isinstance(member, Call) else member.plan(job_id)


def _call(step: str, given: Any) -> Call[Any]:
    if not isinstance(given, Call):
        raise InvalidOption(step, given, "must be a call of a task, e.g. send.s(to='a@example.com')")
    return cast("Call[Any]", given)


def _check_later(step: str, given: Any) -> None:
    if isinstance(given, Chain) and cast("Chain[Any]", given).start is None:
        raise InvalidOption(step, cast("Any", given), "is a chain: give its steps to the outer one")
    if isinstance(given, Group | Chain):
        rule = "is or has a group, which can only be the first step: the result of a job goes to one other job"
        raise InvalidOption(step, cast("Any", given), rule)
    _call(step, given)


def _check_chain(made: Chain[Any], shift: int) -> None:
    """Checks each step with the one before. `shift` is the number of the first call among the steps as given."""
    start: Group[Any] = Group[Any](()) if made.start is None else made.start
    steps = [f"steps[{max(index + shift, 0)}]" for index in range(len(made.calls))]
    before: Call[Any] | None = None
    for step, call in zip(steps, made.calls, strict=True):
        parameter = None if before is None and made.start is None else open_parameter(step, call)
        if parameter is not None and before is not None:
            check_types(step, call, parameter, before)
        elif parameter is not None:
            check_list_types(step, call, parameter, start.lasts)
        before = call
    if len(made.calls) > 1 or start.members:
        made.last.task.app.capabilities.require(Feature.DEPENDENCIES)
        for index, member in enumerate(start.members):
            for call in (member,) if isinstance(member, Call) else member.calls:
                check_in_chain(f"members[{index}]", call)
        for step, call in zip(steps, made.calls, strict=True):
            check_in_chain(step, call)
    _check_store([call.task.app.connection for call in (*start.lasts, *made.calls)])


def _check_store(connections: Sequence[Any]) -> None:
    for other in connections[1:]:
        if other is not connections[0]:
            raise InvalidOption("steps", other, "must be calls of tasks of one store, by one connection")
