"""One scenario, run by a real peer and by jobwire on two databases of one server, compared after every step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from redis import Redis

from .comparison import compare
from .differences import Difference
from .notation import Scenario, Step
from .peer_process import Refused
from .snapshot import snapshot

START = 1_790_000_000_123
"""A moment of September 2026; not a round one, so that offsets show."""
OF_A_WORKER = frozenset({"complete", "fail", "doom", "release", "snooze", "park", "throttled", "extend", "lose"})
OF_AN_OPERATOR = frozenset(
    {"progress", "log", "promote", "retry", "remove", "data", "priority", "delay", "clearlogs", "family"}
)
"""Both sets: verbs whose first argument is a job."""


class Interpreter(Protocol):
    def run(self, clock: int, step: list[Any]) -> Any: ...


class Diverged(AssertionError):
    """The two stores, or the answers to a step, are not the same."""


@dataclass
class Rig:
    """Two interpreters, each with its own database. `redis` are clients of these databases, the peer's first."""

    peer: Interpreter = field(repr=False)
    ours: Interpreter = field(repr=False)
    redis: tuple[Redis, Redis] = field(repr=False)
    added: dict[str, list[str]] = field(default_factory=dict[str, list[str]], repr=False)
    held: dict[str, list[str]] = field(default_factory=dict[str, list[str]], repr=False)
    clock: int = START

    def run(self, scenario: Scenario, known: Sequence[Difference] = ()) -> None:
        """Raises Diverged at the first step after which the two sides differ in more than is known, and for a known
        difference that did not show."""
        self._begin()
        unseen = {difference.name for difference in known if difference.must_show}
        done: list[str] = []
        for written in scenario.steps:
            step = self._resolved(written)
            if step is None:
                continue
            done.append(f"{step}")
            theirs, ours = self._perform(step)
            if theirs != ours:
                excused = {difference.name for difference in known if difference.answers}
                if not excused:
                    raise Diverged(_story(scenario, done, [f"answers: peer {theirs!r}, jobwire {ours!r}"]))
                unseen -= excused
            self._note(step, theirs)
            lines, shown = self._compare(known)
            unseen -= shown
            if lines:
                raise Diverged(_story(scenario, done, lines))
        if unseen:
            raise Diverged(f"{scenario.title}: known differences that do not show: {', '.join(sorted(unseen))}")

    def _compare(self, known: Sequence[Difference]) -> tuple[list[str], set[str]]:
        """What differs beyond what is known, and the names of the known differences that showed."""
        theirs, ours = (snapshot(client) for client in self.redis)
        lines, shown = compare(theirs, ours), set[str]()
        for difference in known:
            if not lines:
                break
            theirs, ours = difference.reconcile(theirs, ours)
            left = compare(theirs, ours)
            if left != lines:
                shown.add(difference.name)
            lines = left
        return lines, shown

    def _begin(self) -> None:
        """Let go of what the last scenario left, which may still write, and start from nothing."""
        self.added, self.held, self.clock = {}, {}, START
        self._perform(Step("begin"))
        for client in self.redis:
            client.flushdb()

    def _perform(self, step: Step) -> tuple[Any, Any]:
        if step.verb == "tick":
            self.clock += step.args[0]
            return None, None
        if step.verb == "redis":
            return self._redis(*map(str, step.args))
        if step.verb == "lose":  # the lock of a worker that died
            return self._redis("DEL", f"bull:{step.queue}:{step.args[0]}:lock")
        if step.verb == "recheck":  # the next look for stalled jobs, its time having come
            self._redis("DEL", f"bull:{step.queue}:stalled-check")
            step = Step("stalled", queue=step.queue)
        wire = [step.verb, step.queue, *step.args]
        return self.peer.run(self.clock, wire), self.ours.run(self.clock, wire)

    def _redis(self, *command: str) -> tuple[Any, Any]:
        theirs, ours = (client.execute_command(*command) for client in self.redis)
        return theirs, ours

    def _resolved(self, step: Step) -> Step | None:
        """The step with a real id for `#n`; None if there is no such job to speak of."""
        if step.verb not in OF_A_WORKER | OF_AN_OPERATOR:
            return step
        job_id = str(step.args[0])
        if job_id.startswith("#"):
            jobs = (self.held if step.verb in OF_A_WORKER else self.added).get(step.queue)
            if not jobs:
                return None
            job_id = jobs[int(job_id[1:]) % len(jobs)]
        return Step(step.verb, (job_id, *step.args[1:]), step.queue)

    def _note(self, step: Step, answer: Any) -> None:
        if isinstance(answer, Refused) or answer is None:
            return
        added, held = self.added.setdefault(step.queue, []), self.held.setdefault(step.queue, [])
        if step.verb in ("add", "schedule"):
            added.append(answer)
        elif step.verb == "bulk":
            added.extend(answer)
        elif step.verb == "claim":
            held.append(answer[0])
        elif step.verb in OF_A_WORKER and isinstance(answer, list):
            if answer[0] == "done" and step.args[0] in held:
                held.remove(step.args[0])
            if answer[1]:
                held.append(answer[1][0])


def _story(scenario: Scenario, done: list[str], lines: list[str]) -> str:
    steps = "\n".join(f"    {line}" for line in done)
    differing = "\n".join(f"  {line}" for line in lines)
    return f"{scenario.title}\n{steps}\n  ^ after this step:\n{differing}"
