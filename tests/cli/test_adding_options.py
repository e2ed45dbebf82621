"""add: the options of a job, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

Call = Callable[..., Any]


def test_the_options_of_a_job_reach_the_store(call: Call, jobwire_url: str, on_queue: Call) -> None:
    options = ("--backoff", "exponential:2s", "--attempts", 3, "--run-at", "2090-01-31T12:00+01:00", "--lifo")
    added = call("add", "emails", "1", *options, "--url", jobwire_url)
    job = on_queue(lambda queue: queue.get(added.out.strip()))
    assert job.run_at.isoformat() == "2090-01-31T11:00:00+00:00"
    assert job.attempts == 3
    stored = json.loads(job.raw["opts"])
    assert (stored["backoff"], stored["lifo"]) == ({"type": "exponential", "delay": 2000}, True)


def test_a_job_has_its_parent_and_the_number_of_finished_ones_to_keep(
    call: Call, jobwire_url: str, on_queue: Call
) -> None:
    parent = call("add", "emails", "1", "--delay", "1h", "--url", jobwire_url).out.strip()
    kept = ("--keep-completed", "100", "--keep-failed", "7d")
    added = call("add", "emails", "2", "--parent", f"emails:{parent}", *kept, "--url", jobwire_url)
    job = on_queue(lambda queue: queue.get(added.out.strip()))
    assert job.parent == ("emails", parent)
    stored = json.loads(job.raw["opts"])
    assert (stored["removeOnComplete"], stored["removeOnFail"]) == ({"count": 100}, {"age": 604_800}), stored


def test_a_job_names_the_workers_that_may_run_it(call: Call, on_every: Call, jobwire_bridgemq_url: str) -> None:
    target = (
        "--target-capability",
        "gpu",
        "--target-capability",
        "cuda",
        "--target-region",
        "eu",
        "--target-mode",
        "all",
    )
    added = call("add", "videos", "1", *target, "--url", jobwire_bridgemq_url)
    job = on_every(jobwire_bridgemq_url, lambda queue: queue.get(added.out.strip()), "videos")
    assert job.raw["target"] == {"capabilities": ["gpu", "cuda"], "region": ["eu"], "mode": "all"}, job.raw


def test_a_unique_job_is_added_once_and_both_print_its_id(call: Call, jobwire_url: str) -> None:
    where = ("--unique", "order-17", "--unique-for", "1h", "--url", jobwire_url)
    first, second = (call("add", "emails", "1", *where) for _ in range(2))
    assert (first.out, first.err) == ("1\n", "")
    assert second.out == "1\n"
    assert "not added: job 1 was there first (duplicate)" in second.err


def test_durations_have_units(call: Call, jobwire_url: str, on_queue: Call) -> None:
    added = call("add", "emails", "1", "--delay", "1h30m", "--url", jobwire_url, "--json").json
    job = on_queue(lambda queue: queue.get(added["id"]))
    assert (job.run_at - job.created_at).total_seconds() == pytest.approx(5400, abs=1)


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (("--backoff", "sometimes"), 2, "write fixed:10s"),
        (("--backoff", "fixed:soon"), 2, "write a duration"),
        (("--run-at", "tomorrow"), 2, "write a time"),
        (("--delay", "soon"), 2, "write a duration"),
        (("--unique-for", "1h"), 2, "--unique-for needs --unique"),
        (("--delay", "1", "--run-at", "2090-01-31"), 1, "can't be given together"),
        (("--lines",), 2, "--lines goes with -"),
        (("--parent", "17"), 2, "write the queue and the id"),
        (("--keep-failed", "some"), 2, "a time such as 7d, all or none"),
        (("--target-mode", "all"), 2, "needs another --target option"),
        (("--target-server", "s1"), 1, "has no"),
        (("--expires", "1h"), 1, "has no expiry"),
    ],
)
def test_a_wrong_option_adds_nothing(
    call: Call, jobwire_url: str, options: tuple[str, ...], code: int, words: str
) -> None:
    said = call("add", "emails", "1", *options, "--url", jobwire_url)
    assert (said.code, said.out) == (code, ""), said
    assert words in said.err.replace("\n", " ")
    assert call("queues", "--url", jobwire_url).code == 4
