"""edit, limits, unique."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from jobwire import Feature, Queue, Rate, Unique

Call = Callable[..., Any]


def test_a_job_is_changed_as_far_as_the_protocol_can(call: Call, on_every: Call, every_url: str) -> None:
    async def add(queue: Queue) -> tuple[str, bool]:
        return (await queue.add({"to": "a"}, delay=600)).id, queue.capabilities.has(Feature.EDITS)

    job, can_edit = on_every(every_url, add)
    said = call("edit", "emails", job, "--progress", "40", "--log", "seen", "--url", every_url)
    assert (said.code, said.out) == (0, f"changed progress, log of job {job}\n"), said
    shown = call("job", "emails", job, "--json", "--url", every_url).json
    assert (shown["progress"], shown["logs"]) == (40, ["seen"])
    said = call("edit", "emails", job, "--data", '{"to": "b"}', "--delay", "2h", "--clear-log", "--url", every_url)
    if can_edit:
        assert said.out == f"changed delay, data, log of job {job}\n"
        shown = call("job", "emails", job, "--json", "--url", every_url).json
        assert (shown["data"], shown["logs"]) == ({"to": "b"}, [])
    else:
        assert (said.code, said.out) == (1, ""), said
        assert "has no changes to a job in the store" in said.err


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ((), 2, "give at least one change"),
        (("--front",), 2, "--front goes with --priority"),
        (("--data", "{"), 1, "not JSON"),
        (("--progress", "{"), 1, "the progress is not JSON"),
    ],
)
def test_a_change_that_is_none(call: Call, jobwire_url: str, arguments: tuple[str, ...], code: int, words: str) -> None:
    call("add", "emails", "1", "--url", jobwire_url)
    said = call("edit", "emails", "1", *arguments, "--url", jobwire_url)
    assert (said.code, said.out) == (code, ""), said
    assert words in said.err.replace("\n", " ")


def test_a_refused_change_leaves_the_job_as_it_was(call: Call, jobwire_url: str) -> None:
    call("add", "emails", '"x"', "--url", jobwire_url)
    said = call("edit", "emails", "1", "--data", '"y"', "--delay", "5m", "--url", jobwire_url)
    assert (said.code, said.out) == (1, ""), said
    assert "it is not delayed" in said.err
    assert call("job", "emails", "1", "--json", "--url", jobwire_url).json["data"] == "x"


def test_a_change_that_is_refused_after_others_names_those_that_were_made(call: Call, jobwire_url: str) -> None:
    call("add", "emails", '"x"', "--delay", "1h", "--url", jobwire_url)
    said = call("edit", "emails", "1", "--priority", "-7", "--delay", "2h", "--data", "2", "--url", jobwire_url)
    assert (said.code, said.out) == (1, ""), said
    assert said.err.splitlines()[0] == "changed delay of job 1; not changed: priority, data"
    limited = call("limits", "emails", "--rate", "5/1s", "--concurrency", "0", "--url", jobwire_url)
    assert (limited.code, limited.out) == (1, ""), limited
    assert call("limits", "emails", "--json", "--url", jobwire_url).json["rate"] is None


def test_limits_are_set_shown_and_removed(call: Call, jobwire_url: str, on_queue: Call) -> None:
    call("add", "emails", "1", "--url", jobwire_url)
    said = call("limits", "emails", "--rate", "100/1m", "--concurrency", "10", "--json", "--url", jobwire_url)
    assert said.json == {"rate": {"jobs": 100, "per": 60.0}, "concurrency": 10, "blocked_for": 0}
    assert on_queue(lambda queue: queue.admin.limits()).rate == Rate(100, per=60)
    said = call("limits", "emails", "--rate", "none", "--concurrency", "none", "--url", jobwire_url)
    assert said.out == "rate         none\nconcurrency  none\n"
    for wrong in (("--rate", "fast"), ("--concurrency", "many"), ("--rate", "3/soon"), ("--rate", f"{'9' * 5000}/1m")):
        assert call("limits", "emails", *wrong, "--url", jobwire_url).code == 2


def test_the_owner_of_a_key_is_named_and_the_key_freed(call: Call, jobwire_url: str, on_queue: Call) -> None:
    on_queue(lambda queue: queue.add(1, unique=Unique("order-17")))
    where = ("unique", "emails", "order-17", "--url", jobwire_url)
    assert call(*where).out == "1\n"
    assert call(*where, "--release").out == "freed the key of job 1\n"
    assert call(*where).code == 4
