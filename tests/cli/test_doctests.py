"""The examples in docstrings are true."""

from __future__ import annotations

import doctest
import importlib

import pytest


@pytest.mark.parametrize(
    "module",
    [
        *("output", "durations", "profiles", "exit_codes", "job_options", "commands.logs"),
        *("demo.histogram", "demo.demo_stores"),
    ],
)
def test_the_examples_in_the_docstrings_hold(module: str) -> None:
    results = doctest.testmod(importlib.import_module(f"jobwire.cli.{module}"))
    assert (results.failed, results.attempted > 0) == (0, True), results
