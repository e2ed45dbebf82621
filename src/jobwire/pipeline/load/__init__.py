"""Files, tables and DataFrames become jobs."""

from __future__ import annotations

from jobwire.pipeline.load.load import LoadResult, load

__all__ = ["LoadResult", "load"]
