"""No column of a published table is a reserved word, so that a query needs no quotes in any dialect."""

from __future__ import annotations

from typing import Any

import duckdb
import psycopg
import pytest
from pyspark.errors import ParseException

from jobwire.embedded import Server
from jobwire.pipeline.lake.schemas import RUNS
from jobwire.pipeline.lake.tables import columns_of
from jobwire.pipeline.sql.names import TABLES, sql_name

BIGQUERY = """
all and any array as asc assert_rows_modified at between by case cast collate contains create cross cube current
default define desc distinct else end enum escape except exclude exists extract false fetch following for from full
group grouping groups hash having if ignore in inner intersect interval into is join lateral left like limit lookup
merge natural new no not null nulls of on or order outer over partition preceding proto qualify range recursive
respect right rollup rows select set some struct tablesample then to treat true unbounded union unnest using when
where window with within
"""
SNOWFLAKE = """
account all alter and any as between by case cast check column connect connection constraint create cross current
current_date current_time current_timestamp current_user database delete distinct drop else exists false following
for from full grant group gscluster having ilike in increment inner insert intersect into is issue join lateral
left like localtime localtimestamp minus natural not null of on or order organization qualify regexp revoke right
rlike row rows sample schema select set some start table tablesample then to trigger true try_cast union unique
update using values view when whenever where with
"""
"""These two have no server that could be asked; the lists are those of their documentation."""


def used() -> dict[str, set[str]]:
    """The names of tables and columns, by table."""
    names = {table: {sql_name(table), *columns_of(table).names} for table in TABLES}
    return names | {"runs": {"runs", *RUNS.names}}


def offenders(reserved: set[str]) -> dict[str, set[str]]:
    assert "select" in reserved
    return {table: names & reserved for table, names in used().items() if names & reserved}


@pytest.mark.parametrize("words", [BIGQUERY, SNOWFLAKE], ids=["BigQuery", "Snowflake"])
def test_no_column_is_reserved_in_a_warehouse(words: str) -> None:
    assert offenders({*words.split()}) == {}


def test_no_column_is_reserved_in_duckdb() -> None:
    query = "select keyword_name from duckdb_keywords() where keyword_category in ('reserved', 'type_function')"
    assert offenders({name for (name,) in duckdb.execute(query).fetchall()}) == {}


def test_no_column_is_reserved_in_postgresql(jobwire_postgres: Server) -> None:
    with psycopg.connect(jobwire_postgres.url) as connection:
        found = connection.execute("select word from pg_get_keywords() where catcode in ('R', 'T')").fetchall()
    assert offenders({word for (word,) in found}) == {}


@pytest.mark.xdist_group("spark")
def test_no_column_is_reserved_in_spark(spark: Any) -> None:
    settings = ("spark.sql.ansi.enabled", "spark.sql.ansi.enforceReservedKeywords")
    before = {name: spark.conf.get(name) for name in settings}
    words = sorted(set().union(*used().values()))
    try:
        for name in settings:
            spark.conf.set(name, "true")
        with pytest.raises(ParseException):
            spark.sql("select 1 as check")
        assert spark.sql(f"select {', '.join(f'1 as {word}' for word in words)}").columns == words
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)
