"""`jobwire pgboss init`: the schema of pg-boss on an empty database."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from jobwire.embedded import Server


@pytest.mark.slow
def test_it_makes_the_schema_once(call: Callable[..., Any], jobwire_postgres: Server, unique: str) -> None:
    url = f"pgboss+{jobwire_postgres.url}?schema={unique}"
    first, second = call("pgboss", "init", "--url", url), call("pgboss", "init", "--url", url)
    assert (first.code, first.out) == (0, f"made schema {unique}, version 46\n"), first
    assert (second.code, second.out) == (0, f"schema {unique} is there already; nothing was changed\n"), second


def test_a_database_that_is_not_there_is_one_sentence(call: Callable[..., Any]) -> None:
    said = call("pgboss", "init", "--url", "pgboss+postgresql://user:secret@127.0.0.1:1/x")
    assert said.code == 3
    assert said.err.startswith("jobwire: ")
    assert said.err.count("\n") == 1
    assert "secret" not in said.err
