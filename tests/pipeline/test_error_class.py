"""Errors put into classes."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import functions as F  # noqa: N812

from jobwire.error_class import error_class as of_python
from jobwire.pipeline.history.error_class import error_class

pytestmark = pytest.mark.xdist_group("spark")

CASES = {
    "ConnectionError: port 6379 refused": "ConnectionError",
    "redis.exceptions.ConnectionError: gone": "ConnectionError",
    "HandlerTimeout: 30 s": "HandlerTimeout",
    "ValueError": "ValueError",
    "TypeError: x is undefined\n    at work (a.js:1:2)": "TypeError",
    "Error: user 17 is gone": "user # is gone",
    "user 17 is gone": "user # is gone",
    "no row 3f2b8c1e-9a4d-4e6f-8b7a-1c2d3e4f5a6b": "no row <id>",
    "at 0xdeadbeef": "at <id>",
    "object 507f1f77bcf86cd799439011 missing": "object <id> missing",
    "took 1.5 s of 10:30": "took # s of #",
    "Job: no such thing": "Job: no such thing",
    "a\t b": "a b",
    "  padded  ": "padded",
    "x" * 200: "x" * 80,
    "größe 5 überschritten": "größe # überschritten",
}


PYTHON = """Traceback (most recent call last):
  File "work.py", line 3, in send
KeyError: 'a'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "work.py", line 5, in send
shop.errors.NoStock: 3 of 17 left
and more
"""
NODE = "TypeError: x is undefined\n    at work (a.js:1:2)"
WITH_STACK = {
    ("3 of 17 left", PYTHON): "NoStock",
    ("3 of 17 left\nand more", PYTHON): "NoStock",
    ("2 of 9 left", PYTHON): "NoStock",  # an earlier run: the store keeps the last stack
    ("NoStock", PYTHON): "NoStock",
    ("gone", PYTHON): "gone",
    ("x is undefined", NODE): "TypeError",
    ("", NODE): "TypeError",
    ("user 17 is gone", "Error: user 17 is gone\n    at work (a.js:1:2)"): "user # is gone",
    ("user 17 is gone", "RuntimeError: user 17 is gone"): "user # is gone",
    ("RuntimeError: user 17 is gone", None): "user # is gone",
    ("smtp.TimeoutError: after 3 s", PYTHON): "TimeoutError",
    ("no colour", "not a stack at all"): "no colour",
}


def test_errors_of_one_cause_have_one_class_in_spark_and_in_python(spark: Any) -> None:
    cases = {**{(error, None): kind for error, kind in CASES.items()}, **WITH_STACK}
    errors = spark.createDataFrame([*cases, (None, None), (None, NODE)], "error string, stack string").coalesce(1)

    with_stack = error_class(F.col("error"), F.col("stack"))
    found = errors.select("error", "stack", with_stack.alias("class"), error_class(F.col("error")).alias("plain"))

    *rows, none, alone = found.collect()
    assert {(row["error"], row["stack"]): row["class"] for row in rows} == cases
    assert [row["plain"] for row in rows if row["stack"] is None] == [row["class"] for row in rows if not row["stack"]]
    assert {(error, stack): of_python(error, stack or "") for error, stack in cases} == cases
    assert (none["class"], none["plain"], alone["class"]) == (None, None, None)
