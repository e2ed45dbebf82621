"""Rules for runs that promise an order, a rate or a concurrency. No I/O."""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator

from faults.case import Case
from faults.kinds import kind_of
from faults.ledger import Entry, Kind

ROUNDING = 0.1
"""Seconds by which the time of a claim may differ from the store's own clock."""


def jobs_start_in_order(case: Case) -> Iterator[str]:
    """Compares each producer's jobs without a delay: first starts come in the order of the adds.

    A job whose claim was lost before its handler started is overtaken, until the claim's lease ends.
    """
    allowed = case.rest.promises.overtaken
    if allowed is None:
        return
    first: dict[str, float] = {}
    for entry in case.of(Kind.STARTED):
        first[entry.job] = min(entry.at, first.get(entry.job, entry.at))
    added: dict[str, list[Entry]] = {}
    for entry in case.of(Kind.ACKNOWLEDGED):
        if entry.job in first and kind_of(entry.n).delay is None:
            added.setdefault(entry.by, []).append(entry)
    overtaken: list[int] = []
    for entries in added.values():
        earliest = float("inf")
        for entry in sorted(entries, key=lambda one: one.n, reverse=True):
            if first[entry.job] > earliest:
                overtaken.append(entry.n)
            earliest = min(earliest, first[entry.job])
    if len(overtaken) > allowed:
        yield f"{len(overtaken)} jobs started after later ones, {allowed} may: {sorted(overtaken)}"


def no_more_start_in_a_period(case: Case) -> Iterator[str]:
    """Counts claims. The store counts them in periods that begin with a claim. So a time of any length touches two
    periods more than fit into it, at most, and each of them has the limit's number of claims.

    The store made a claim after the call was begun, which is the time that the claim has, and before its handler
    started. Between the two are a moment, or an outage after which the driver repeated the call.
    """
    if case.rest.promises.rate is None:
        return
    most, per = case.rest.promises.rate
    started: list[float] = []
    for entry in sorted(case.of(Kind.STARTED), key=lambda one: one.claimed, reverse=True):
        insort(started, entry.at)  # the starts of claims that are not older than this one
        for periods in range(2, (len(started) - 1) // most + 1):
            took = started[most * periods] - entry.claimed
            if took + ROUNDING < (periods - 1) * per:
                yield (
                    f"{most * periods + 1} jobs were claimed within {took:.3f} s, in {periods} periods of "
                    f"{per:g} s at most, and {most} may be in each"
                )
                return


def no_more_run_at_once(case: Case) -> Iterator[str]:
    """Counts runs that overlap. A run that did not end lasted until its process wrote its last line, at least. A job
    counts once: its earlier run is over when the store has given it to another claim. A run whose claim was lost does
    not count: its handler ran on after the store had taken the job back, and given its place to another one."""
    if case.rest.promises.at_once is None:
        return
    accepted = {(job.id, job.token) for job in case.own}
    lost = {(one.job, one.token) for one in case.of(Kind.VERDICT) if one.detail == "lost"} - accepted
    ended = {(entry.job, entry.token): entry.at for entry in case.of(Kind.ENDED)}
    last_seen: dict[str, float] = {}
    for entry in case.entries:
        last_seen[entry.by] = max(entry.at, last_seen.get(entry.by, 0.0))
    changes: list[tuple[float, int]] = []
    for runs in case.runs.values():
        ordered = sorted(runs, key=lambda run: run.at)
        for run, after in zip(ordered, [*ordered[1:], None], strict=True):
            if (run.job, run.token) in lost:
                continue
            end = ended.get((run.job, run.token), last_seen[run.by])
            changes += [(run.at, 1), (end if after is None else min(end, after.at), -1)]
    running = most = 0
    for _, change in sorted(changes):  # an end before a start at the same time
        running += change
        most = max(most, running)
    if most > case.rest.promises.at_once:
        yield f"{most} jobs ran at the same time, {case.rest.promises.at_once} may"
