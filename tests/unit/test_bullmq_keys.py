"""BullMQ's keys, and the names that would not be its own."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as some

from jobwire.backends.bullmq.keys import Keys, hash_tag
from jobwire.errors import InvalidOption

NAMES = some.text(min_size=1).filter(lambda name: ":" not in name and name.isprintable())


def test_every_key_has_the_queues_base_and_no_braces() -> None:
    keys = Keys("bull", "emails")
    words = {name: value for name, value in vars(keys).items() if name not in ("prefix", "queue", "qualified", "base")}
    assert len(words) == len(set(words.values()))
    assert all(key.startswith("bull:emails:") and "{" not in key for key in words.values())


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (Keys("bull", "q").job("7"), "bull:q:7"),
        (Keys("bull", "q").lock("7"), "bull:q:7:lock"),
        (Keys("bull", "q").logs("7"), "bull:q:7:logs"),
        (Keys("bull", "q").dependencies("7"), "bull:q:7:dependencies"),
        (Keys("bull", "q").processed("7"), "bull:q:7:processed"),
        (Keys("bull", "q").ignored_failures("7"), "bull:q:7:failed"),
        (Keys("bull", "q").unsuccessful("7"), "bull:q:7:unsuccessful"),
        (Keys("bull", "q").scheduler("s"), "bull:q:repeat:s"),
        (Keys("bull", "q").scheduled_job_id("s", 1794734404076), "repeat:s:1794734404076"),
        (Keys("bull", "q").unique("k"), "bull:q:de:k"),
        (Keys("bull", "q").unique_pending("k"), "bull:q:dn:k"),
        (Keys("{bull}", "q").wait, "{bull}:q:wait"),
    ],
)
def test_a_jobs_keys_are_bullmqs(key: str, expected: str) -> None:
    assert key == expected


def test_connections_are_named_as_node_names_them() -> None:
    keys = Keys("bull", "w1")
    assert keys.connection_name("wname") == "bull:dzE=:w:wname"
    assert keys.connection_name(None) == "bull:dzE="
    assert keys.events_connection_name() == "bull:dzE=:qe"


@pytest.mark.parametrize("name", ["", "a:b", ":", "\ud800"])
def test_a_name_that_would_not_be_one_key_is_refused(name: str) -> None:
    with pytest.raises(InvalidOption, match="queue"):
        Keys("bull", name)


@given(NAMES, NAMES)
def test_two_queues_never_share_a_key(first: str, second: str) -> None:
    one, other = Keys("bull", first), Keys("bull", second)
    assert (one.wait == other.wait) == (first == second)
    assert not (first != second and one.wait.startswith(other.base))


@pytest.mark.parametrize(
    ("key", "tag"),
    [("{bull}:q:", "bull"), ("bull:{q}:", "q"), ("bull:q:", None), ("bull:{}:", None), ("a}{b:", None)],
)
def test_a_hash_tag_is_a_text_between_braces(key: str, tag: str | None) -> None:
    assert hash_tag(key) == tag
