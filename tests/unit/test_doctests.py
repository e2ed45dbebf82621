"""The examples in docstrings of modules that commands and pages share are true."""

from __future__ import annotations

import doctest
import importlib

import pytest


@pytest.mark.parametrize("module", ["durations", "error_class", "next_runs", "look.palette", "look.words"])
def test_the_examples_in_the_docstrings_hold(module: str) -> None:
    results = doctest.testmod(importlib.import_module(f"jobwire.{module}"))
    assert (results.failed, results.attempted > 0) == (0, True), results
