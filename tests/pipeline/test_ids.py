"""Ids that a second attempt finds again."""

from __future__ import annotations

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as some

from jobwire.pipeline.ids import digest, native_id

PROTOCOLS = ("bullmq", "bridgemq", "pgboss", "monque")


@given(some.sampled_from(PROTOCOLS), some.text(min_size=1))
def test_an_id_derived_twice_is_the_same_and_is_native(protocol: str, text: str) -> None:
    derived = native_id(protocol, text)
    assert derived == native_id(protocol, text)
    assert native_id(protocol, derived) == derived


@given(some.sampled_from(PROTOCOLS), some.sets(some.text(min_size=1), min_size=2, max_size=2))
def test_two_ids_stay_two(protocol: str, texts: set[str]) -> None:
    one, other = texts
    try:
        same = uuid.UUID(one) == uuid.UUID(other)  # one UUID can be written in several ways
    except ValueError:
        same = False
    assert (native_id(protocol, one) == native_id(protocol, other)) is (protocol == "pgboss" and same)


@pytest.mark.parametrize("text", ["17", "a:b", "", "x" * 300])
def test_what_node_refuses_as_an_id_becomes_another(text: str) -> None:
    assert native_id("bullmq", text) == f"jw-{digest(text)}"


def test_parts_of_a_digest_do_not_run_together() -> None:
    assert digest("ab", "c") != digest("a", "bc")
