"""Errors put into classes."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import functions as F  # noqa: N812

from jobwire.pipeline.history.error_class import error_class

pytestmark = pytest.mark.xdist_group("spark")

CASES = {
    "ConnectionError: port 6379 refused": "ConnectionError",
    "redis.exceptions.ConnectionError: gone": "redis.exceptions.ConnectionError",
    "HandlerTimeout: 30 s": "HandlerTimeout",
    "ValueError": "ValueError",
    "TypeError: x is undefined\n    at work (a.js:1:2)": "TypeError",
    "Error: user 17 is gone": "Error: user # is gone",
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


def test_errors_of_one_cause_have_one_class(spark: Any) -> None:
    errors = spark.createDataFrame([(error,) for error in CASES], "error string")

    found = errors.select("error", error_class(F.col("error")).alias("class")).collect()

    assert {row["error"]: row["class"] for row in found} == CASES


def test_no_error_has_no_class(spark: Any) -> None:
    none = spark.createDataFrame([(None,)], "error string")

    assert none.select(error_class(F.col("error"))).first()[0] is None
