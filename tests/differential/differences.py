"""Where jobwire and a peer are known to differ, and why. Nothing else may.

A difference is reconciled, not ignored: it says how the one store would have to be changed to be the other. Those of
single scenarios are named in the scenario (`~ name`) and must show there; those of BullMQ 6 hold for all scenarios.
"""

from __future__ import annotations

from dataclasses import dataclass

from .reconciling import (
    Reconcile,
    as_they_are,
    one_waiting_list,
    same_words,
    unpaused,
    without_delay_marker,
    without_event,
    without_field,
    without_keys,
)


@dataclass(frozen=True)
class Difference:
    name: str
    why: str
    reconcile: Reconcile
    must_show: bool = True
    answers: bool = False
    """The two sides also answer differently."""
    witness: str = ""
    """A scenario that shows it, for those that hold everywhere."""


OF_SCENARIOS: dict[str, Difference] = {
    difference.name: difference
    for difference in (
        Difference(
            "words for a parent that can't complete",
            "each library says in its own words that children keep a parent from completing",
            same_words(
                r"Job \S+ has pending dependencies\. moveToFinished",
                r"Cannot complete job \S+ because it has at least one failed child\. moveToFinished",
                r"the job has children that have not finished",
                r"the job has children that failed",
            ),
        ),
        Difference(
            "an entry without a job is not run",
            "a list entry whose hash is gone has no data: BullMQ hands it to the handler, jobwire fails it",
            as_they_are,
            must_show=False,
            answers=True,
        ),
        Difference(
            "obliteration leaves nothing",
            "BullMQ 5.62 leaves the marker, the rate-limit counter and parents that wait; nobody could reach them",
            without_keys(":limiter", ":q:waiting-children", ":q:R", ":q:R:dependencies"),
        ),
        Difference(
            "a refused obliteration does not pause",
            "BullMQ pauses before it looks for running jobs; jobwire looks first, so that a refusal changes nothing",
            unpaused,
        ),
        Difference(
            "drain spares the job that a scheduler needs",
            "BullMQ cuts as many entries off the list as it deleted jobs, whichever they are: a scheduler's job that "
            "it means to keep may lose its place, and the scheduler stops",
            without_keys(":wait"),
        ),
        Difference(
            "no marker for a job that its own batch replaced",
            "jobwire sets the delay marker once per batch, so a delayed job that a later one of the batch replaces "
            "leaves none; BullMQ's would wake a worker for nothing",
            without_delay_marker,
        ),
        Difference(
            "a paused queue with jobs is not drained",
            "BullMQ 5.62 looks for jobs in `wait` before it says `drained`, where a paused queue has none",
            without_event("drained"),
        ),
        Difference(
            "a parent waits for the children behind a finished one",
            "BullMQ 5.62 releases a parent as soon as one child turns out to be done, before the rest of the tree is "
            "added; BullMQ 6 and jobwire when the tree is whole",
            without_keys(":r:wait", ":r:marker", ":r:events", ":r:waiting-children"),
        ),
        Difference(
            "a changed rule starts afresh",
            "BullMQ 5.62 runs the moment of the old rule once more; BullMQ 6 and jobwire go by the new one at once",
            without_keys(
                ":repeat", ":repeat:s", ":delayed", ":wait", ":marker", ":events", *(f"{n:03d}" for n in range(1000))
            ),
            answers=True,
        ),
        Difference(
            "a changed interval has an offset of its own",
            "BullMQ 6 starts a changed interval from now, and keeps the offset of the old one for the moment after a "
            "gap",
            without_field("offset"),
        ),
        Difference(
            "a flow is refused whole",
            "BullMQ leaves out a child that has another parent and says nothing; jobwire adds all of a tree or none",
            without_keys(":r:S", ":r:S:dependencies", ":r:waiting-children", ":q:b", ":q:wait", ":events", ":id"),
            answers=True,
        ),
        Difference(
            "a job that runs again keeps its priority",
            "BullMQ 5.62 puts a job that an operator retries in line without its priority, BullMQ 6 with it",
            without_keys(":pc", ":prioritized", ":wait"),
        ),
        Difference(
            "a schedule that is put again keeps its moment in a paused queue, too",
            "BullMQ 6 leaves jobs in `wait` when a queue is paused, and looks for the schedule's job in `paused`",
            without_keys(":repeat", ":repeat:s", ":wait", ":paused", ":delayed", ":marker", ":id", ":events", "123"),
            answers=True,
        ),
        Difference(
            "a cron schedule that is put again keeps the moment of the job that waits",
            "BullMQ 6 goes by the clock: when that moment has come and its job was not picked up, it takes the next",
            without_keys(":repeat", ":repeat:s", ":delayed", ":wait", ":marker", ":events", "000"),
            answers=True,
        ),
        Difference(
            "a schedule without data takes that of its job",
            "BullMQ 5.62 keeps what an operator wrote into the running job for those that follow, BullMQ 6 does not",
            without_field("data"),
        ),
        Difference(
            "a prioritised job that goes back wakes a worker",
            "BullMQ sets no marker for a prioritised job that a worker hands back, so that no idle worker takes it "
            "before its next look, seconds later",
            without_keys(":marker"),
        ),
        Difference(
            "children that all run again are not owed again",
            "BullMQ 6 gives children back to their parent when all jobs are retried, BullMQ 5.62 for single ones only",
            without_keys(":p:dependencies", ":p:processed"),
        ),
    )
}


OF_BULLMQ_6: list[Difference] = [
    Difference(
        "paused jobs stay in wait",
        "BullMQ 6 moves no list when a queue is paused",
        one_waiting_list,
        must_show=False,
        witness="operators: pause twice, resume twice",
    ),
    Difference(
        "no debounced event",
        "BullMQ 6 sends `deduplicated` only",
        without_event("debounced"),
        must_show=False,
        witness="unique: one per key while it is there",
    ),
    Difference(
        "no nrjid",
        "BullMQ 6 does not note in a scheduled job which one comes next",
        without_field("nrjid"),
        must_show=False,
        witness="schedules: every so often, from now on",
    ),
]
