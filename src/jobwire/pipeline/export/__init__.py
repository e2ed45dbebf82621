"""Silver and gold as tables of Delta Lake or Apache Iceberg, for programs that read those.

from jobwire.pipeline.export import export_tables
"""

from __future__ import annotations

from jobwire.pipeline.export.export import ExportedTable, ExportResult, export_tables

__all__ = ["ExportResult", "ExportedTable", "export_tables"]
