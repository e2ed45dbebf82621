"""Limits per key, by the groups of pg-boss: a job's key is the id of its group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from jobwire.native import PgBossWorker
from jobwire.rate import Rate


class PgKeyLimits:
    """Implements KeyLimits."""

    def job_options(self, key: str) -> Mapping[str, Any]:
        return {"group": {"id": key}}

    def worker_options(self, native: object | None, rate: Rate | None, running: int | None) -> PgBossWorker:
        own = native if isinstance(native, PgBossWorker) else PgBossWorker()
        return replace(own, key_rate=rate, key_rate_by="group", group_concurrency=running)
