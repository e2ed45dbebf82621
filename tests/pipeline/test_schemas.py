"""Arrow's schema and Spark's are made from one list; they must mean the same."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql.pandas.types import to_arrow_schema

from jobwire.pipeline.lake import campaign_schemas, schemas
from jobwire.pipeline.lake.rows import EventRow, JobRow
from jobwire.pipeline.lake.schemas import Columns, columns
from jobwire.pipeline.load.check import CHECKED, CheckedRow

TABLES = {name: value for name, value in (vars(schemas) | vars(campaign_schemas)).items() if isinstance(value, Columns)}


@pytest.mark.parametrize("name", TABLES)
def test_arrow_and_spark_agree_on_every_column(name: str) -> None:
    table = TABLES[name]
    assert to_arrow_schema(table.spark, timezone="UTC").equals(table.arrow)


@pytest.mark.parametrize(("row", "table"), [(JobRow, schemas.JOBS), (EventRow, schemas.EVENTS), (CheckedRow, CHECKED)])
def test_rows_have_the_fields_of_their_table_in_its_order(row: Any, table: Columns) -> None:
    assert row._fields == table.names


def test_columns_can_be_added_and_left_out() -> None:
    table = columns("a string", "b bigint").plus("c double")
    assert table.names == ("a", "b", "c")
    assert table.without(["b"]).ddl == "a string, c double"
