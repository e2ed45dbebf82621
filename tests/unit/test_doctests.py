"""The examples in docstrings are true: of modules that commands and pages share, and of drivers' errors."""

from __future__ import annotations

import doctest
import importlib

import pytest

MODULES = ["durations", "error_class", "next_runs", "look.palette", "look.words"]
DRIVERS = ["backends.redisio.errors", "backends.monque.connection.errors"]


@pytest.mark.parametrize("module", MODULES + DRIVERS)
def test_the_examples_in_the_docstrings_hold(module: str) -> None:
    results = doctest.testmod(importlib.import_module(f"jobwire.{module}"))
    assert (results.failed, results.attempted > 0) == (0, True), results
