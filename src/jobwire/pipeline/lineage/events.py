"""Events of OpenLineage for the runs in a lake's run log: what ran, from what, to what, and how it ended.

A run has an event START, and COMPLETE, FAIL or ABORT once it has ended. They are made from the run log alone, so a run
that was killed has its event as well, and making them again gives the same events.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from jobwire._version import __version__
from jobwire.errors import DOCS
from jobwire.pipeline.lake.files import LakeFiles

PRODUCER = f"{DOCS}#{__version__}"
_SPEC = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent"
_ERROR = "https://openlineage.io/spec/facets/1-0-1/ErrorMessageRunFacet.json#/$defs/ErrorMessageRunFacet"
_ENDS = {"ok": "COMPLETE", "failed": "FAIL", "interrupted": "ABORT"}


@dataclass(frozen=True)
class _Lake:
    root: str
    bronze: tuple[str, ...]


@dataclass(frozen=True)
class RunEvents:
    """The events of one run. `ended` is False for a run that is under way."""

    run: str
    ended: bool
    events: tuple[Mapping[str, Any], ...]


def run_events(root: str, runs: list[dict[str, Any]], namespace: str) -> Iterator[RunEvents]:
    """Yields the events of runs, which are rows of the run log. Jobs are named by their command in the namespace,
    tables by their paths in the lake."""
    files = LakeFiles(root)
    lake = _Lake(files.root, tuple(f"bronze/{name}" for name in files.folders("bronze")))
    for run in runs:
        ended = run["outcome"] in _ENDS
        begun = _event(run, "START", run["started_at"], lake, namespace)
        # A run that was killed has not recorded when: it is known to have ended, and to have run at its start.
        end = (
            _event(run, _ENDS[run["outcome"]], run["ended_at"] or run["started_at"], lake, namespace) if ended else None
        )
        yield RunEvents(run["run"], ended, (begun,) if end is None else (begun, end))


def _event(run: Mapping[str, Any], kind: str, at: datetime, lake: _Lake, namespace: str) -> dict[str, Any]:
    facets: dict[str, Any] = {}
    if kind == "FAIL":
        facets["errorMessage"] = {
            "_producer": PRODUCER,
            "_schemaURL": _ERROR,
            "message": run["error"] or "unknown",
            "programmingLanguage": "python",
        }
    inputs, outputs = _datasets(run, lake)
    return {
        "eventType": kind,
        "eventTime": at.isoformat(),
        "producer": PRODUCER,
        "schemaURL": _SPEC,
        "run": {"runId": str(uuid.uuid5(uuid.NAMESPACE_URL, f"{lake.root}/runs/{run['run']}")), "facets": facets},
        "job": {"namespace": namespace, "name": f"pipeline {run['command']}"},
        "inputs": inputs,
        "outputs": outputs,
    }


def _datasets(run: Mapping[str, Any], lake: _Lake) -> tuple[list[dict[str, str]], list[dict[str, str]]]:
    """Returns what a run read and what it wrote, as far as the run log has it."""
    notes, offsets = json.loads(run["notes"] or "{}"), json.loads(run["offsets"] or "{}")
    tables = [_dataset(lake.root, name) for name in notes.get("checksums", ())]
    bronze = [_dataset(lake.root, name) for name in lake.bronze]
    match run["command"]:
        case "ingest":
            unchanged = notes.get("unchanged") or []
            return [_dataset(store, "queues") for store in offsets if store not in unchanged], bronze
        case "build":
            return bronze, tables
        case "report":
            path = notes.get("path")
            return [_dataset(lake.root, "gold")], [_dataset("file", path)] if path else []
        case "export":
            return [_dataset(lake.root, "silver"), _dataset(lake.root, "gold")], [_dataset("file", notes["to"])]
        case _:
            source, target = notes.get("store"), notes.get("to_store")
            queue = notes.get("queue") or "queues"
            return (
                [_dataset(source, queue)] if source else [],
                [_dataset(target, notes.get("to_queue") or queue)] if target else [],
            )


def _dataset(namespace: str, name: str) -> dict[str, str]:
    return {"namespace": namespace, "name": name}
