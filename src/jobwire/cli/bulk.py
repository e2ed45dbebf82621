"""Acts on many jobs of a queue: finds them, shows what will be done, asks, does it in steps.

A step is one call. What has been done when the command is interrupted stays done, and repeating the command does the
rest: jobs that have left the state are not found again.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from jobwire.boundary import Acted, Feature
from jobwire.cli import exit_codes
from jobwire.cli.confirm import confirm
from jobwire.cli.exit_codes import NothingFound, WrongUsage
from jobwire.cli.jobview import listing
from jobwire.cli.output import emit, remark
from jobwire.cli.session import ask
from jobwire.counted import counted
from jobwire.errors import JobwireError
from jobwire.job_filters import Filters
from jobwire.model import Job, State
from jobwire.queue import Queue

_STEP = 100
_EXAMPLES = 3


@dataclass(frozen=True, slots=True)
class Act:
    """Something that can be done to many jobs."""

    verb: str
    past: str
    run: Callable[[Queue, Sequence[str]], Awaitable[Sequence[Acted]]]
    feature: Feature | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """The jobs that a command line chooses: by id, by filters, or all of a state."""

    queue: str
    ids: Sequence[str]
    state: State
    filters: Filters
    everything: bool = False
    limit: int | None = None

    def check(self, verb: str) -> None:
        """Raises WrongUsage if the command line chooses no jobs, or chooses them in two ways."""
        chosen = bool(self.filters) or self.everything
        if self.ids and (chosen or self.limit is not None):
            raise WrongUsage("give either ids or filters, not both")
        if not self.ids and not chosen:
            raise WrongUsage(f"which jobs? Give ids, a filter such as --error or --older-than, or --all to {verb} all")

    @property
    def words(self) -> str:
        kind = self.state.value.replace("_", " ")
        return f"{kind} jobs in {self.queue}" + (" that match" if self.filters else "")


@dataclass(slots=True)
class Found:
    """The jobs that were found: the ids of all, and a few whole ones to show."""

    ids: list[str] = field(default_factory=list[str])
    shown: list[Job] = field(default_factory=list[Job])


def act_on_jobs(act: Act, choice: Choice, url: str | None, *, yes: bool, dry_run: bool, as_json: bool) -> None:
    """Does the whole command. Ends with exit code 4 if there are no such jobs, with 1 if the act was refused."""
    choice.check(act.verb)
    if choice.ids:
        found = Found(list(choice.ids))
    else:
        found = ask(choice.queue, url, lambda opened: _find(opened, act, choice))
        if not found.ids:
            raise NothingFound(f"there are no {choice.words}")
        deed = f"{act.verb} {counted(len(found.ids), 'job')} of {choice.queue}"
        if dry_run or not (yes and as_json):
            _preview(found, choice, deed)
        if dry_run:
            if as_json:
                emit({"matched": len(found.ids), "done": 0})
            return
        confirm(deed, yes=yes)
    answers = ask(choice.queue, url, lambda opened: _do(opened, act, found.ids))
    _report(act, choice, found, answers, as_json=as_json)


async def _find(queue: Queue, act: Act, choice: Choice) -> Found:
    if act.feature is not None:
        queue.capabilities.require(act.feature)
    found = Found()
    async for job in queue.iter_jobs(choice.state):
        if choice.filters.match(job):
            found.ids.append(job.id)
            if len(found.shown) < _EXAMPLES:
                found.shown.append(job)
            if choice.limit is not None and len(found.ids) >= choice.limit:
                break
    return found


def _preview(found: Found, choice: Choice, deed: str) -> None:
    """Shows on stderr what will be done, with a few of the jobs."""
    out = Console(stderr=True, highlight=False, soft_wrap=not sys.stderr.isatty())
    out.print(f"This will {deed}, such as:", markup=False)
    out.print(listing(found.shown, choice.state, fit=out.is_terminal))


async def _do(queue: Queue, act: Act, ids: Sequence[str]) -> list[Acted]:
    if act.feature is not None:
        queue.capabilities.require(act.feature)
    answers: list[Acted] = []
    with _bar() as bar:
        task = bar.add_task(act.verb, total=len(ids))
        try:
            for start in range(0, len(ids), _STEP):
                answers += await _whole(act.run(queue, ids[start : start + _STEP]), answers)
                bar.update(task, completed=len(answers))
        except (asyncio.CancelledError, JobwireError):
            bar.stop()
            done = answers.count(Acted.DONE)
            remark(f"{act.past} {done:,} of {len(ids):,}; repeat the command for the rest")
            raise
    return answers


async def _whole(step: Awaitable[Sequence[Acted]], answers: list[Acted]) -> Sequence[Acted]:
    """Returns the answers of a step. If Ctrl-C comes meanwhile, waits for the step and adds its answers to the rest, so
    that the number of jobs is right. A second Ctrl-C does not wait."""
    under_way = asyncio.ensure_future(step)
    try:
        return await asyncio.shield(under_way)
    except asyncio.CancelledError:
        with contextlib.suppress(JobwireError):
            answers += await under_way
        raise


def _bar() -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
        disable=not sys.stderr.isatty(),
    )


def _report(act: Act, choice: Choice, found: Found, answers: Sequence[Acted], *, as_json: bool) -> None:
    tally = Counter(answers)
    done = tally.pop(Acted.DONE, 0)
    if as_json:
        summary: dict[str, Any] = {"matched": len(found.ids), "done": done}
        emit({**summary, **{answer.value.replace(" ", "_"): number for answer, number in tally.items()}})
    elif done:
        typer.echo(f"{act.past} {counted(done, 'job')} of {choice.queue}")
    named = bool(choice.ids)
    for answer, number in tally.items():
        which = [job_id for job_id, one in zip(found.ids, answers, strict=True) if one is answer]
        what = f"job {which[0]!r}" if named and number == 1 else counted(number, "job")
        remark(f"not {act.past}: {what}, which {'is' if number == 1 else 'are'} {answer.reason}")
    if tally and (named or not done):
        alone_missing = set(tally) == {Acted.NOT_FOUND}
        raise typer.Exit(exit_codes.NOTHING_FOUND if alone_missing else exit_codes.REFUSED)
