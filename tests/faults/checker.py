"""The checker: compares the ledger with what is in the store when all is at rest.

What it proves is listed in RULES, one function each. A function yields a sentence for each thing that is wrong. No I/O.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence

from faults.case import FINAL, FOREIGN, Case, Rest
from faults.kinds import ATTEMPTS, kind_of
from faults.ledger import Entry, Kind
from faults.limits import jobs_start_in_order, no_more_run_at_once, no_more_start_in_a_period


def every_acknowledged_job_is_there(case: Case) -> Iterator[str]:
    there = {job.id for job in case.rest.jobs}
    for entry in case.of(Kind.ACKNOWLEDGED):
        if entry.job not in there:
            yield f"job {entry.n} ({entry.job}) was acknowledged and is gone"


def every_job_is_one_that_was_added(case: Case) -> Iterator[str]:
    intended = {entry.n for entry in case.of(Kind.INTENDED)}
    for n, times in Counter(job.n for job in case.own).items():
        if n not in intended:
            yield f"job {n} is in the store and no producer added it"
        elif times > 1:
            yield f"job {n} was added once and is there {times} times"


def every_job_has_the_end_of_its_kind(case: Case) -> Iterator[str]:
    for job in case.own:
        ends = kind_of(job.n).ends
        if job.state not in FINAL:
            yield f"job {job.n} ({job.id}) is {job.state} at rest"
        elif job.state != ends:
            yield f"job {job.n} ({job.id}) is {job.state} and not {ends}: {job.error}"


def no_job_has_two_outcomes(case: Case) -> Iterator[str]:
    final: defaultdict[str, set[str]] = defaultdict(set)
    for entry in case.of(Kind.VERDICT):
        if entry.detail in FINAL:
            final[entry.job].add(entry.token)
    for job, tokens in final.items():
        if len(tokens) > 1:
            yield f"job {job} has outcomes of {len(tokens)} claims that were all accepted as final: {sorted(tokens)}"


def what_was_accepted_is_in_the_store(case: Case) -> Iterator[str]:
    stored = {job.id: job for job in case.rest.jobs}
    for entry in case.of(Kind.VERDICT):
        job = stored.get(entry.job)
        if entry.detail not in FINAL or job is None:
            continue
        if job.state != entry.detail or (job.n != FOREIGN and job.token != entry.token):
            yield (
                f"job {job.n} ({job.id}) was accepted as {entry.detail} of claim {entry.token}, and the store has it "
                f"as {job.state} of claim {job.token}"
            )


CLOCKS = 0.25
"""Seconds by which workers may disagree on the time. A claim is lost after a lease, which is far longer; a job that
raised is claimed again within milliseconds."""


def no_outcome_of_a_lost_claim_is_accepted(case: Case) -> Iterator[str]:
    """A claim is lost when the store gives the job to another claim. The last claim's outcome is the only valid one.

    A claim has the time at which its call was made. A driver may repeat the call after an outage, so that the claim is
    younger: it was made before its handler started, at the latest.
    """
    for job in case.own:
        runs = case.runs.get(job.id, ())
        mine = next((run for run in runs if run.token == job.token), None)
        if mine is None:
            if job.state in FINAL:
                yield f"job {job.n} ({job.id}) is {job.state} by claim {job.token!r}, under which no handler started"
            continue
        for other in runs:
            if other.claimed > mine.at + CLOCKS:
                yield (
                    f"job {job.n} ({job.id}) has the outcome of claim {mine.token}, which was lost: claim "
                    f"{other.token} was asked for {other.claimed - mine.at:.3f} s after its handler had started"
                )


def an_outcome_follows_its_handlers_end(case: Case) -> Iterator[str]:
    ends = {(entry.job, entry.token): entry.detail for entry in case.of(Kind.ENDED)}
    expected = {"completed": "returned", "failed": "raised"}
    for job in case.own:
        end = ends.get((job.id, job.token))
        if job.state in expected and case.runs.get(job.id) and end != expected[job.state]:
            yield f"job {job.n} ({job.id}) is {job.state}, and the handler of claim {job.token} {end or 'never ended'}"


def attempts_are_within_bounds(case: Case) -> Iterator[str]:
    """Runs that raised are charged, up to the limit. Runs whose worker died are not: pg-boss's limit rises by them."""
    charged = Counter(entry.job for entry in case.of(Kind.VERDICT) if entry.detail in ("retried", "failed"))
    for job in case.own:
        if charged[job.id] > ATTEMPTS:
            yield f"job {job.n} ({job.id}) was charged for {charged[job.id]} runs, of {ATTEMPTS}"
        if job.attempts_made > job.attempts:
            yield f"job {job.n} ({job.id}) has {job.attempts_made} attempts of {job.attempts}"
        if kind_of(job.n).ends == job.state == "failed" and job.attempts_made < job.attempts:
            yield f"job {job.n} ({job.id}) has failed for good after {job.attempts_made} of {job.attempts} attempts"


def the_counts_are_those_of_the_jobs(case: Case) -> Iterator[str]:
    listed = Counter(job.state for job in case.rest.jobs)
    for state in {*case.rest.counts, *listed}:
        if case.rest.counts.get(state, 0) != listed[state]:
            yield f"counts() has {case.rest.counts.get(state, 0)} {state} jobs, and {listed[state]} can be listed"
    foreign = Counter(job.state for job in case.rest.jobs if job.n == FOREIGN)
    for state, number in case.rest.foreign.items():
        if foreign[state] != number:
            yield f"{number} foreign records must be {state}, and {foreign[state]} are"


def nothing_is_left_over(case: Case) -> Iterator[str]:
    for thing in case.rest.residue:
        yield f"left over at rest: {thing}"


def no_connection_is_left(case: Case) -> Iterator[str]:
    for connection in case.rest.connections:
        yield f"left after all workers have ended: {connection}"


MEMORY = 30 * 2**20
"""Bytes that a process may grow between its first jobs and its last: buffers, caches, imports of rare code."""


THREADS = 6
"""Threads that an event loop may start for blocking calls, and keeps."""
SOCKETS = 4
"""Connections that a pool may have opened after the first jobs, for more calls at a time, and keeps."""


def survivors_are_as_they_were(case: Case) -> Iterator[str]:
    for name, (before, after) in case.rest.survivors.items():
        if after.threads > before.threads + THREADS:
            yield f"{name} has {after.threads} threads in the end, {before.threads} after its first jobs"
        if after.sockets > before.sockets + SOCKETS:
            yield f"{name} has {after.sockets} sockets in the end, {before.sockets} after its first jobs"
        if after.memory > before.memory + MEMORY:
            yield f"{name} takes {after.memory >> 20} MB in the end, {before.memory >> 20} MB after its first jobs"


RULES: tuple[Callable[[Case], Iterator[str]], ...] = (
    every_acknowledged_job_is_there,
    every_job_is_one_that_was_added,
    every_job_has_the_end_of_its_kind,
    no_job_has_two_outcomes,
    what_was_accepted_is_in_the_store,
    no_outcome_of_a_lost_claim_is_accepted,
    an_outcome_follows_its_handlers_end,
    attempts_are_within_bounds,
    the_counts_are_those_of_the_jobs,
    nothing_is_left_over,
    no_connection_is_left,
    survivors_are_as_they_were,
    jobs_start_in_order,
    no_more_start_in_a_period,
    no_more_run_at_once,
)


def violations(entries: Sequence[Entry], rest: Rest) -> list[str]:
    """Returns everything that is wrong, each with the name of its rule. Empty if all promises were kept."""
    runs: defaultdict[str, list[Entry]] = defaultdict(list)
    for entry in entries:
        if entry.kind is Kind.STARTED:
            runs[entry.job].append(entry)
    case = Case(entries, rest, runs)
    return [f"{rule.__name__}: {found}" for rule in RULES for found in rule(case)]
