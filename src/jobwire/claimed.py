"""A job that was claimed by hand, with `Queue.claim`. The program that claimed it settles it, once.

A job's life here: `complete`, `fail`, `release` or `snooze` ends the claim. Until then it lasts for its lease, which
only `extend` renews. So the jobs of a program that hangs are recovered and run elsewhere. A call that the store did not
answer is safe to make again. If the first one had arrived, the second raises LostLock.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar, cast

from jobwire import codec
from jobwire.boundary import Backend, Claim, Completed, Failed, Outcome, Released, Snoozed, Verdict
from jobwire.checks import Seconds, seconds, yes_or_no
from jobwire.errors import InvalidOption, LostLock, Snooze, Unrecoverable, WrongState
from jobwire.failure import kind_of, message_of, shortened, stack_of
from jobwire.generics import In_co
from jobwire.held_job import HeldJob

Answer = TypeVar("Answer")

_WORDS = {
    Verdict.COMPLETED: "completed",
    Verdict.FAILED: "failed",
    Verdict.RETRIED: "failed, and will be run again",
    Verdict.RELEASED: "released",
    Verdict.SNOOZED: "snoozed",
    Verdict.PARKED: "put back until its children are done",
}
_LOST = "is lost"


class Holder(Protocol):
    """Makes the calls to the store for a claimed job."""

    async def settle(self, outcome: Outcome, on_failure: Callable[[], None]) -> Verdict:
        """Sends the outcome. `on_failure` is called if the store did not answer the first try, even if the second one
        succeeds."""
        ...

    async def extend(self, claim: Claim) -> bool:
        """Extends the lease. Returns False if the claim is lost."""
        ...

    async def to_its_end(self, call: Coroutine[Any, Any, Answer]) -> Answer:
        """Awaits the call. It goes on if the caller is cancelled, and the queue waits for it when it is closed."""
        ...

    def let_go(self, job: ClaimedJob) -> None:
        """Forgets a job that is settled or lost."""
        ...

    def trouble(self, job: ClaimedJob, error: BaseException) -> None:
        """Logs that a job could not be settled. Used where raising would hide another error."""
        ...


class ClaimedJob(HeldJob[In_co]):
    """A job that `Queue.claim` gave to this program, which must `complete`, `fail`, `release` or `snooze` it: once.

    `async with job:` settles it by how the block ends, unless the block did so itself. The end of the block completes
    the job, an exception fails it (Unrecoverable for good; Snooze puts it off), cancellation and signals release it.
    Exceptions leave the block all the same.
    """

    __slots__ = ("_began", "_ended", "_holder", "_settling", "_unanswered")

    def __init__(self, claim: Claim, backend: Backend, holder: Holder) -> None:
        super().__init__(claim, backend)
        self._holder = holder
        self._began = time.monotonic()
        self._ended: str | None = None
        self._settling = False
        self._unanswered = False

    @property
    def settled(self) -> bool:
        """True once the job has been settled or is known to be lost: this program must not work on it any more."""
        return self._ended is not None

    async def complete(self, result: Any = None) -> None:
        """Completes the job with a result: any JSON value.

        Raises WrongState if the store refused that and failed the run instead, as for a job whose children have not
        finished.
        """
        encoded = codec.dumps(result, field="result")
        self._expect_verdict(await self._settle(Completed(self._claim, encoded)), Verdict.COMPLETED)

    async def fail(self, error: BaseException | str, *, retry: bool = True) -> bool:
        """Fails this run. Returns True if another attempt follows, which the job's attempts and backoff decide.
        `retry=False` and Unrecoverable fail it for good."""
        final = not yes_or_no("retry", retry) or issubclass(type(error), Unrecoverable)
        if isinstance(error, BaseException):
            failed = Failed(self._claim, message_of(error), stack_of(error), final=final, kind=kind_of(error))
        elif isinstance(error, str) and error.strip():  # pyright: ignore[reportUnnecessaryIsInstance] callers may be untyped
            failed = Failed(self._claim, shortened(error), final=final)
        else:
            raise InvalidOption("error", error, "must be an exception or a text that is not empty")
        return await self._settle(failed) is Verdict.RETRIED

    async def release(self) -> None:
        """Gives the job back as if it had not been claimed: no attempt is charged, and it is ready at once."""
        self._expect_verdict(await self._settle(Released(self._claim)), Verdict.RELEASED)

    async def snooze(self, delay: Seconds) -> None:
        """Puts the job off by that long. No attempt is charged."""
        self._expect_verdict(await self._settle(Snoozed(self._claim, seconds("delay", delay))), Verdict.SNOOZED)

    async def extend(self) -> None:
        """Extends the lease by the time that it was claimed with. Raises LostLock if the claim is lost."""
        self._check_unsettled()
        if not await self._holder.extend(self._claim):
            raise self._lose()

    # --- settling ---------------------------------------------------------------------------------------------------

    async def _settle(self, outcome: Outcome) -> Verdict:
        self._check_unsettled()
        self._settling = True
        self._claim.run_seconds = time.monotonic() - self._began
        return await self._holder.to_its_end(self._send(outcome))

    async def _send(self, outcome: Outcome) -> Verdict:
        try:
            verdict = await self._holder.settle(outcome, self._note_failure)
        finally:
            self._settling = False
        if verdict is Verdict.LOST:
            raise self._lose()
        self.end(f"has been {_WORDS[verdict]}")
        return verdict

    def _note_failure(self) -> None:
        self._unanswered = True

    def end(self, words: str) -> None:
        """Records what became of the job. Also called by the holder when it has settled the job itself."""
        self._ended = words
        self._holder.let_go(self)

    def _check_unsettled(self) -> None:
        if self._ended == _LOST:
            raise LostLock(self._lost_words())
        if self._ended is not None:
            raise WrongState(f"job {self.id!r} {self._ended}: a claimed job is settled once")
        if self._settling:
            raise WrongState(f"job {self.id!r} is being settled by another call: a claimed job is settled once")

    def _lose(self) -> LostLock:
        self.end(_LOST)
        return LostLock(self._lost_words())

    def _lost_words(self) -> str:
        also = ", or an earlier call that got no answer has settled it" if self._unanswered else ""
        return f"job {self.id!r} is no longer ours: its lease has ended or was taken away{also}"

    def _expect_verdict(self, verdict: Verdict, wanted: Verdict) -> None:
        if verdict is not wanted:
            raise WrongState(
                f"job {self.id!r} was not {_WORDS[wanted]}: the store refused that, and it {self._ended}; "
                "the job's error has the reason"
            )

    # --- as a block -------------------------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._ended is not None:
            return
        if error is None:
            await self.complete()
            return
        try:
            if issubclass(type(error), Snooze):
                await self._snooze_or_fail(cast("Snooze", error))
            elif issubclass(type(error), Exception):
                await self.fail(error)
            else:
                await self.release()
        except Exception as trouble:
            self._holder.trouble(self, trouble)  # the block's own exception is raised

    async def _snooze_or_fail(self, request: Snooze) -> None:
        """Puts the job off as the block asks for. A delay that is not a duration is an error of the block."""
        try:
            delay = seconds("Snooze.delay", request.delay)
        except InvalidOption as refusal:
            await self.fail(refusal)
        else:
            await self.snooze(delay)
