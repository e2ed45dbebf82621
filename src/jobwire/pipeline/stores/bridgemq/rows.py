"""A job's documents as a row of the table `jobs`.

`raw` is a JSON object: `job`, the job's document with null for its payload; `status`; `result`, that document with null
for the value in the column `result`; `progress`, that document; `logs`, a list of texts. What a job has not is left
out. `finished.py` makes the job from it again.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from jobwire import codec as json_codec
from jobwire.backends.bridgemq import codec
from jobwire.errors import InvalidOption, MalformedPayload
from jobwire.model import State
from jobwire.pipeline.lake.rows import JobRow
from jobwire.pipeline.stores.bridgemq.documents import Stored
from jobwire.pipeline.stores.redisio.fingerprint import digest

_MOST_RUNS = 2**31 - 1
_ABSENT, _PRESENT = b"-", b"+"


class Bad(Exception):
    """The reason why a job can't be read."""


def document_of(stored: Stored, kind: str) -> codec.Document | None:
    """Returns the job's document; None for a job of another type. Raises Bad for what is not a job."""
    if stored.foreign:
        raise Bad(f"its key holds no JSON text but a {stored.foreign}")
    try:
        document: Any = codec.load(stored.data)
    except MalformedPayload as error:
        raise Bad(f"its data is not JSON: {error}") from None
    if not isinstance(document, dict):
        raise Bad("its data is not a JSON object")
    its_kind = document.get("type")
    if not isinstance(its_kind, str) or not its_kind:
        raise Bad("it has no type")
    if its_kind != kind:
        return None
    if codec.from_ms(document.get("createdAt")) is None:
        raise Bad(f"its createdAt is not a time: {document.get('createdAt')!r}")
    return document


def fingerprint(stored: Stored) -> str:
    """Returns the fingerprint of a job. `scripts/purge.lua` computes the same."""
    parts = [stored.container.native.encode(), stored.data]
    for value in (stored.status, stored.result, stored.progress):
        parts += (_ABSENT, b"") if value is None else (_PRESENT, value)
    return digest([*parts, *stored.logs])


class Records:
    """Makes rows for one job type of one store."""

    def __init__(self, store: str, kind: str) -> None:
        self._store = store
        self._kind = kind

    def row(self, stored: Stored) -> JobRow | None:
        """Returns the row of a job in any state. One that can't be read becomes a row with the reason. None: of another
        type."""
        stamp = fingerprint(stored)
        try:
            document = document_of(stored, self._kind)
            return None if document is None else self._sound(stored, document, stamp)
        except Bad as bad:
            reason = str(bad)
        except UnicodeDecodeError as error:
            reason = f"it holds bytes that are not UTF-8: {error.object[error.start : error.end]!r}"
        raw = as_text({"data": shown(stored.data)})
        return JobRow(
            self._store,
            self._kind,
            shown(stored.entry.id),
            state=stored.container.state.value,
            native_state=stored.container.native,
            raw=raw,
            fingerprint=stamp,
            malformed=reason,
        )

    def _sound(self, stored: Stored, document: codec.Document, stamp: str) -> JobRow:
        entry, container = stored.entry, stored.container
        result = codec.parse(stored.result) if stored.result else None
        progress = codec.parse(stored.progress) if stored.progress else None
        _, started, _, worker = [*entry.claim.decode().split("|", 3), "", "", ""][:4]
        job = codec.read_job(
            self._kind,
            entry.id.decode(),
            document,
            container.state,
            native_state=container.native,
            result=result,
            progress=progress,
            run_at=codec.from_ms(float(entry.score)) if container.state is State.DELAYED else None,
            started_ms=int(started) if started.isdigit() and worker else None,
            worker=worker or None,
        )
        return JobRow(
            store=self._store,
            queue=self._kind,
            id=job.id,
            name=job.name,
            state=container.state.value,
            native_state=container.native,
            priority=job.priority,
            position=entry.position,
            attempts=min(job.attempts or 1, _MOST_RUNS),
            attempts_made=min(job.attempts_made, _MOST_RUNS),
            payload=as_text(job.data),
            result=as_text(job.result) if container.state is State.COMPLETED else None,
            error=None if job.error is None else shown(job.error),
            stacktrace=shown(job.stacktrace[0]) if job.stacktrace else None,
            progress=as_text(job.progress) if progress is not None else None,
            created_at=_micros(job.created_at),
            run_at=_micros(job.run_at),
            started_at=_micros(job.started_at),
            finished_at=_micros(job.finished_at),
            worker=None if job.worker is None else shown(job.worker),
            raw=as_text(_raw(stored, document, result, progress)),
            fingerprint=stamp,
        )


def as_text(value: Any) -> str:
    """Returns compact JSON. A peer's numbers that JavaScript can't hold stay as they are."""
    try:
        return json_codec.dumps(value).decode()
    except InvalidOption:
        return json.dumps(value, separators=(",", ":"))


def _raw(
    stored: Stored, document: codec.Document, result: codec.Document | None, progress: codec.Document | None
) -> codec.Document:
    raw: codec.Document = {"job": {**document, "payload": None}}
    if stored.status is not None:
        raw["status"] = stored.status.decode()
    if result is not None:
        held = stored.container.state is State.COMPLETED and "data" in result
        raw["result"] = {**result, "data": None} if held else result
    if progress is not None:
        raw["progress"] = progress
    if stored.logs:
        raw["logs"] = [line.decode() for line in stored.logs]
    return raw


def shown(value: str | bytes) -> str:
    """Returns a text that any table can hold: JSON may contain lone surrogates, and a key any bytes."""
    encoded = value if isinstance(value, bytes) else value.encode(errors="backslashreplace")
    return encoded.decode(errors="backslashreplace")


def _micros(moment: datetime | None) -> int | None:
    return None if moment is None else round(moment.timestamp() * 1000) * 1000
