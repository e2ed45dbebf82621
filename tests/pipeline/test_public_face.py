"""The names that users import, and what importing them costs."""

from __future__ import annotations

import subprocess
import sys

import pytest

import jobwire.pipeline as face


@pytest.mark.parametrize("name", face.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert callable(getattr(face, name))


def test_an_unknown_name_is_an_error_as_of_any_module() -> None:
    with pytest.raises(AttributeError, match=r"module 'jobwire\.pipeline' has no attribute 'laek'"):
        _ = face.laek


def test_dialects_need_neither_spark_nor_a_driver() -> None:
    told = """
import sys
from jobwire.pipeline.stores.dialect import all_dialects
assert [one.native_id("order-17") for one in all_dialects()]
print([name for name in ("pyspark", "redis", "psycopg", "pymongo", "bson") if name in sys.modules])
"""
    found = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)

    assert found.stdout.strip() == "[]"
