"""SQL over the published tables of a lake, for people and for programs that are not Spark.

from jobwire.pipeline.sql import query, register_tables, write_views
"""

from __future__ import annotations

from jobwire.pipeline.sql.query import QueryError, query
from jobwire.pipeline.sql.spark_catalog import register_tables
from jobwire.pipeline.sql.views import write_views

__all__ = ["QueryError", "query", "register_tables", "write_views"]
