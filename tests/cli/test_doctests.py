"""The examples in docstrings are true."""

from __future__ import annotations

import doctest
import importlib

import pytest


@pytest.mark.parametrize("module", ["output", "jobview", "demo.histogram", "demo.stations"])
def test_the_examples_in_the_docstrings_hold(module: str) -> None:
    results = doctest.testmod(importlib.import_module(f"jobwire.cli.{module}"))
    assert (results.failed, results.attempted > 0) == (0, True), results
