"""Archives finished jobs of a queue in the lake, and restores them."""

from __future__ import annotations

from jobwire.pipeline.archive.archive import ArchiveResult, archive
from jobwire.pipeline.archive.restore import RestoreResult, restore

__all__ = ["ArchiveResult", "RestoreResult", "archive", "restore"]
