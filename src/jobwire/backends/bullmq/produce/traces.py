"""The trace of a producer, in the job's option `telemetry`. BullMQ's telemetry reads it in Node.js, and so does our
worker."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jobwire import codec


class BullTraces:
    """Implements Traces."""

    def job_options(self, headers: Mapping[str, str]) -> Mapping[str, Any]:
        return {"telemetry": {"metadata": codec.dumps(dict(headers)).decode()}}
