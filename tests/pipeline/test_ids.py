"""Ids that a second attempt finds again."""

from __future__ import annotations

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as some

from jobwire.errors import InvalidOption
from jobwire.options import NewJob
from jobwire.pipeline.stores.dialect import all_dialects, dialect_of
from jobwire.pipeline.stores.ids import digest

PROTOCOLS = [dialect.protocol for dialect in all_dialects()]


@given(some.sampled_from(PROTOCOLS), some.text(min_size=1))
def test_an_id_derived_twice_is_the_same_and_is_native(protocol: str, text: str) -> None:
    dialect = dialect_of(protocol)
    derived = dialect.native_id(text)
    assert derived == dialect.native_id(text)
    assert dialect.native_id(derived) == derived
    assert dialect.takes_id(derived)


@given(some.sampled_from(PROTOCOLS), some.sets(some.text(min_size=1), min_size=2, max_size=2))
def test_two_ids_stay_two(protocol: str, texts: set[str]) -> None:
    one, other = texts
    try:
        same = uuid.UUID(one) == uuid.UUID(other)  # one UUID can be written in several ways
    except ValueError:
        same = False
    native_id = dialect_of(protocol).native_id
    assert (native_id(one) == native_id(other)) is (protocol == "pgboss" and same)


@pytest.mark.parametrize("text", ["17", "-5", "a:b", "0:a:b", "wait", "meta", ""])
def test_what_node_refuses_as_an_id_becomes_another(text: str) -> None:
    with pytest.raises(InvalidOption):
        dialect_of("bullmq").rules.check("mail", NewJob(None, id=text))

    assert dialect_of("bullmq").native_id(text) == f"jw-{digest(text)}"


@pytest.mark.parametrize(
    ("protocol", "text"),
    [("bullmq", "a:b:c"), ("bullmq", "order-17"), ("bullmq", "x" * 300), ("bridgemq", "17"), ("bridgemq", "a:b")],
)
def test_an_id_that_the_protocol_takes_stays_as_it_is(protocol: str, text: str) -> None:
    assert dialect_of(protocol).native_id(text) == text


def test_parts_of_a_digest_do_not_run_together() -> None:
    assert digest("ab", "c") != digest("a", "bc")
