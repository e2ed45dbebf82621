"""The checker finds what is wrong: each rule has a ledger or a store that breaks it, and it alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from faults.case import FOREIGN, Promises, Rest, StoredJob, Vitals
from faults.checker import MEMORY, RULES, SOCKETS, THREADS, violations
from faults.ledger import Book, Entry, Kind, Ledger

N, POISON_N = 0, 7


def entry(kind: Kind, n: int = N, token: str = "t1", claimed: float = 1.0, *, detail: str = "") -> Entry:
    return Entry(kind, "test", claimed, n, f"job-{n}", token, claimed, detail)


def life(n: int = N, token: str = "t1", *, ends: str = "returned", verdict: str = "completed") -> list[Entry]:
    """A job that is added, run once and settled."""
    return [
        entry(Kind.INTENDED, n, ""),
        entry(Kind.ACKNOWLEDGED, n, ""),
        entry(Kind.STARTED, n, token),
        entry(Kind.ENDED, n, token, detail=ends),
        entry(Kind.VERDICT, n, token, detail=verdict),
    ]


DONE = StoredJob("job-0", N, "completed", "t1")
FINE = Rest([DONE], {"completed": 1})


def broken(entries: list[Entry], rest: Rest) -> set[str]:
    """The names of the rules that are broken."""
    return {found.partition(":")[0] for found in violations(entries, rest)}


def test_a_run_in_which_all_went_well_has_no_violations() -> None:
    assert violations(life(), FINE) == []


def test_a_job_that_raised_in_every_run_may_fail() -> None:
    entries = [*life(POISON_N, "t1", ends="raised", verdict="retried"), entry(Kind.STARTED, POISON_N, "t2", 2.0)]
    entries += [
        entry(Kind.ENDED, POISON_N, "t2", detail="raised"),
        entry(Kind.VERDICT, POISON_N, "t2", detail="failed"),
    ]
    rest = Rest([StoredJob("job-7", POISON_N, "failed", "t2", 3)], {"failed": 1})
    assert violations(entries, rest) == []


def test_an_add_that_raised_may_have_had_its_effect_or_not() -> None:
    refused = [entry(Kind.INTENDED, 2, ""), entry(Kind.REFUSED, 2, "")]
    assert violations([*life(), *refused], FINE) == []
    ran = [one for one in life(2) if one.kind is not Kind.ACKNOWLEDGED]
    assert (
        violations([*ran, entry(Kind.REFUSED, 2, "")], Rest([replace(DONE, id="job-2", n=2)], {"completed": 1})) == []
    )


def test_the_answer_lost_is_no_violation_if_the_claim_was_the_last() -> None:
    """A worker whose answer was lost on its way sends the outcome again, and is refused although it was accepted."""
    assert violations([*life()[:-1], entry(Kind.VERDICT, detail="lost")], FINE) == []


def several(starts: list[float], *, lasts: float = 0.01) -> list[Entry]:
    """Plain jobs, added one after another, that start at these times."""
    return [
        replace(one, at=start + lasts * (one.kind is Kind.ENDED), claimed=start)
        for number, start in enumerate(starts)
        for one in life(10 * number)
    ]


def rest_of(jobs: int, promises: Promises) -> Rest:
    stored = [StoredJob(f"job-{10 * number}", 10 * number, "completed", "t1") for number in range(jobs)]
    return Rest(stored, {"completed": jobs}, promises=promises)


SECOND = [entry(Kind.STARTED, token="t2", claimed=2.0), entry(Kind.ENDED, token="t2", detail="returned")]
BROKEN = {
    "every_acknowledged_job_is_there": (life(), Rest([], {})),
    "every_job_is_one_that_was_added": (life()[1:], FINE),
    "every_job_has_the_end_of_its_kind": (life()[:2], Rest([replace(DONE, state="waiting", token="")], {"waiting": 1})),
    "no_outcome_of_a_lost_claim_is_accepted": ([*life(), *SECOND], FINE),
    "an_outcome_follows_its_handlers_end": (life(ends="cancelled"), FINE),
    "attempts_are_within_bounds": (life(), replace(FINE, jobs=[replace(DONE, attempts_made=4)])),
    "the_counts_are_those_of_the_jobs": (life(), replace(FINE, counts={"completed": 2})),
    "nothing_is_left_over": (life(), replace(FINE, residue=["work:7:lock"])),
    "no_connection_is_left": (life(), replace(FINE, connections=["of process 7"])),
    "survivors_are_as_they_were": (
        life(),
        replace(FINE, survivors={"w": (Vitals(3, 4, 0), Vitals(4 + THREADS, 4, 0))}),
    ),
    "jobs_start_in_order": (several(starts=[3.0, 1.0, 2.0]), rest_of(3, Promises(overtaken=0))),
    "no_more_start_in_a_period": (several(starts=[1.0, 1.1, 1.2, 1.3, 1.4]), rest_of(5, Promises(rate=(2, 1.0)))),
    "no_more_run_at_once": (several(starts=[1.0, 1.1, 1.2], lasts=0.5), rest_of(3, Promises(at_once=2))),
}


@pytest.mark.parametrize("rule", BROKEN)
def test_what_breaks_a_rule_is_found_by_it_alone(rule: str) -> None:
    assert broken(*BROKEN[rule]) == {rule}


def test_every_rule_is_tested() -> None:
    together = {"no_job_has_two_outcomes", "what_was_accepted_is_in_the_store"}
    assert {rule.__name__ for rule in RULES} == BROKEN.keys() | together


def test_two_outcomes_of_one_job_are_found_also_by_their_disagreement_with_the_store() -> None:
    both = [*life(), *SECOND, entry(Kind.VERDICT, token="t2", detail="completed")]
    assert broken(both, replace(FINE, jobs=[replace(DONE, token="t2")])) == {
        "no_job_has_two_outcomes",
        "what_was_accepted_is_in_the_store",
    }


def test_an_accepted_outcome_that_was_undone_is_found() -> None:
    assert "what_was_accepted_is_in_the_store" in broken(life(), replace(FINE, jobs=[replace(DONE, state="failed")]))


def test_a_job_that_one_add_made_twice_is_found() -> None:
    twice = Rest([DONE, replace(DONE, id="job-0b")], {"completed": 2})
    again = [replace(one, job="job-0b") for one in life() if one.kind not in (Kind.INTENDED, Kind.ACKNOWLEDGED)]
    assert broken([*life(), *again], twice) == {"every_job_is_one_that_was_added"}


def test_a_result_that_no_handler_made_is_found() -> None:
    assert "no_outcome_of_a_lost_claim_is_accepted" in broken(life()[:2], FINE)


def test_a_job_that_failed_before_its_attempts_were_used_up_is_found() -> None:
    rest = Rest([StoredJob("job-7", POISON_N, "failed", "t1", 1)], {"failed": 1})
    assert broken(life(POISON_N, ends="raised", verdict="failed"), rest) == {"attempts_are_within_bounds"}


def test_a_job_may_be_overtaken_for_each_claim_that_was_lost() -> None:
    assert violations(several(starts=[3.0, 1.0, 2.0]), rest_of(3, Promises(overtaken=1))) == []


def test_a_time_that_touches_two_periods_may_have_the_starts_of_both() -> None:
    assert violations(several(starts=[1.0, 1.9, 2.1, 2.2]), rest_of(4, Promises(rate=(2, 1.0)))) == []


def test_a_claim_that_was_repeated_after_an_outage_is_younger_than_its_call() -> None:
    late = [replace(one, claimed=1.97, at=max(one.at, 3.1)) for n in (40, 50) for one in life(n)]
    assert violations([*several(starts=[1.0, 1.95, 2.0, 2.0]), *late], rest_of(6, Promises(rate=(2, 1.0)))) == []


def test_a_run_whose_claim_was_lost_leaves_its_place_to_others() -> None:
    """A process stood still for longer than its lease. Its job is claimed again after others have had their turn."""
    lost = [replace(one, detail="lost") if one.kind is Kind.VERDICT else one for one in several([1.0], lasts=5.0)]
    others = [replace(one, at=one.at + 2.0) for one in several(starts=[1.0, 1.0, 1.0], lasts=0.5)[5:]]
    again = [replace(one, at=8.0, token="t2", claimed=8.0) for one in life()[2:]]
    stored = rest_of(3, Promises(at_once=2))
    rest = replace(stored, jobs=[replace(stored.jobs[0], token="t2"), *stored.jobs[1:]])
    assert violations([*lost, *others, *again], rest) == []


def test_a_run_is_over_when_its_process_has_ended_or_its_job_runs_again() -> None:
    killed = [replace(one, by="killed", at=min(one.at, 1.05)) for one in several(starts=[1.0])[:3]]
    again = [replace(one, at=1.1, token="t2", claimed=1.1) for one in life()[2:]]
    other = [replace(one, at=one.at + 0.02) for one in several(starts=[1.0, 1.08])[5:]]
    stored = rest_of(2, Promises(at_once=1))
    rest = replace(stored, jobs=[replace(stored.jobs[0], token="t2"), stored.jobs[1]])
    assert violations([*killed, *again, *other], rest) == []


def test_foreign_records_that_are_not_where_they_must_be_are_found() -> None:
    foreign = StoredJob("odd", FOREIGN, "failed", "")
    rest = Rest([DONE, foreign], {"completed": 1, "failed": 1}, foreign={"failed": 2})
    assert broken(life(), rest) == {"the_counts_are_those_of_the_jobs"}
    assert violations(life(), replace(rest, foreign={"failed": 1})) == []


@pytest.mark.parametrize("after", [Vitals(3, 5 + SOCKETS, 0), Vitals(3, 4, MEMORY + 1)], ids=["sockets", "memory"])
def test_a_worker_that_keeps_more_than_it_had_is_found(after: Vitals) -> None:
    rest = replace(FINE, survivors={"w": (Vitals(3, 4, 0), after)})
    assert broken(life(), rest) == {"survivors_are_as_they_were"}


def test_a_ledger_is_read_while_it_is_written_and_a_line_that_is_not_whole_is_left_for_later(tmp_path: Path) -> None:
    book, ledger = Book(tmp_path, "one"), Ledger(tmp_path)
    book.write(Kind.INTENDED, n=1)
    assert [one.n for one in ledger.refresh()] == [1]
    with (tmp_path / "one.jsonl").open("a") as file:
        file.write('{"kind": "intended", "by": "one"')
        file.flush()
        assert len(ledger.refresh()) == 1
        file.write(', "at": 1.0, "n": 2}\n')
    assert [one.n for one in ledger.refresh()] == [1, 2]
