"""A job's hash as a row of the table `jobs`.

`raw` is a JSON object of the hash's fields that no column holds word for word, as texts, and of the job's side keys
under their endings: `:logs` and `:dependencies` as lists, `:processed` and `:failed` as objects, `:unsuccessful` as an
object of scores. `finished.py` makes the job from it again.
"""

from __future__ import annotations

from typing import Any, cast

import orjson

from jobwire import codec
from jobwire.backends.bullmq.keys import Keys
from jobwire.backends.bullmq.work.stored_options import read_options
from jobwire.errors import MalformedPayload
from jobwire.pipeline.lake.rows import JobRow
from jobwire.pipeline.stores.bullmq.containers import DUE_SCALE, Container
from jobwire.pipeline.stores.bullmq.fingerprint import Sides, fingerprint

Fields = dict[bytes, bytes]
LATEST_MS = 253_402_300_799_999
"""The end of the year 9999, where the times of most tools end."""

_MOST_RUNS = 2**31 - 1
_HASHES = (b":processed", b":failed")
_SCORED = (b":unsuccessful",)


class _Bad(Exception):
    """The reason why a job can't be read."""


class Records:
    """Makes rows for one queue of one store."""

    def __init__(self, store: str, keys: Keys) -> None:
        self._store = store
        self._keys = keys

    def row(  # noqa: PLR0917 the container of a hash is not stored in it, and is needed to read it
        self, container: Container, raw_id: bytes, fields: Fields, sides: Sides, position: int | None, score: float
    ) -> JobRow:
        """Returns the row of a job in any state. One that can't be read becomes a row with the reason."""
        stamp = fingerprint(container.name, fields, sides)
        try:
            return self._sound(container, raw_id, dict(fields), sides, position, score, stamp)
        except _Bad as bad:
            reason = str(bad)
        except UnicodeDecodeError as error:
            reason = f"it holds bytes that are not UTF-8: {error.object[error.start : error.end]!r}"
        record = {shown(name): shown(value) for name, value in fields.items()}
        return self.malformed(container, raw_id, reason, orjson.dumps(record).decode(), stamp)

    def malformed(
        self, container: Container, raw_id: bytes, reason: str, record: str = "{}", stamp: str | None = None
    ) -> JobRow:
        """Returns a row with the reason why there is no job in it."""
        return JobRow(
            self._store,
            self._keys.queue,
            shown(raw_id),
            state=container.state.value,
            native_state=container.native,
            raw=record,
            fingerprint=stamp,
            malformed=reason,
        )

    def _sound(  # noqa: PLR0917 as above
        self,
        container: Container,
        raw_id: bytes,
        rest: Fields,
        sides: Sides,
        position: int | None,
        score: float,
        stamp: str,
    ) -> JobRow:
        take = rest.pop
        payload = take(b"data", None)
        if payload is None:
            raise _Bad("it has no data")
        if not _is_json(payload):
            raise _Bad(f"its data is not JSON: {shown(payload[:80])!r}")
        created = _time(rest, b"timestamp")
        if created is None:
            found = rest.get(b"timestamp")
            raise _Bad("it has no timestamp" if found is None else f"its timestamp is not a time: {shown(found)!r}")
        run_at = _scaled(score / DUE_SCALE) if container.name == "delayed" else _due(created, rest.get(b"delay"))
        finished = _time(rest, b"finishedOn")
        if finished is None and container.state.finished:
            finished = _scaled(score)
        options, parent = rest.get(b"opts"), rest.get(b"parentKey")
        attempts = read_options(options).attempts if options is not None else 1
        return JobRow(
            store=self._store,
            queue=self._keys.queue,
            id=raw_id.decode(),
            name=_text(take(b"name", b"")),
            state=container.state.value,
            native_state=container.native,
            priority=_count(rest, b"priority"),
            position=position,
            attempts=min(max(attempts, 1), _MOST_RUNS),
            attempts_made=min(_made(rest), _MOST_RUNS),
            payload=payload.decode(),
            result=_json(rest, b"returnvalue"),
            error=_text(take(b"failedReason", None)),
            stacktrace=_stack(rest),
            progress=_json(rest, b"progress"),
            parent=":".join(self._keys.job_key(parent)) if parent else None,
            unique_key=_text(take(b"deid", None)),
            created_at=created,
            run_at=run_at,
            started_at=_time(rest, b"processedOn"),
            finished_at=finished,
            worker=_text(take(b"pb", None)),
            raw=_raw(rest, sides),
            fingerprint=stamp,
        )


def shown(value: bytes) -> str:
    """Returns bytes as a text, whatever they are."""
    return value.decode(errors="backslashreplace")


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode()


def _is_json(value: bytes) -> bool:
    try:
        orjson.loads(value)
    except orjson.JSONDecodeError:
        try:
            codec.loads(value)  # knows more: lone surrogates, and nesting beyond orjson's
        except MalformedPayload:
            return False
    return True


def _json(rest: Fields, name: bytes) -> str | None:
    """Returns the field's JSON. One that isn't JSON becomes a JSON text, and stays in `raw` as it is."""
    value = rest.get(name)
    if value is None:
        return None
    if _is_json(value):
        del rest[name]
        return value.decode()
    return codec.dumps(value.decode()).decode()


def _stack(rest: Fields) -> str | None:
    """Returns the trace of the newest failed run. BullMQ keeps a list, which stays in `raw` if it has more."""
    value = rest.get(b"stacktrace")
    if value is None or value == b"[]":
        return None
    found = codec.loads(value) if _is_json(value) else None
    newest = cast("list[Any]", found)[-1] if isinstance(found, list) and found else None
    if not isinstance(newest, str):
        return None
    if value == codec.dumps([newest]):
        del rest[b"stacktrace"]
    return newest.encode(errors="backslashreplace").decode()


def _time(rest: Fields, name: bytes) -> int | None:
    """Returns microseconds from a field of milliseconds. One that the column can't give back exactly stays in `raw`."""
    value = rest.get(name)
    if value is None:
        return None
    if value.isdigit() and len(value) == 13:
        del rest[name]
        return int(value) * 1000
    try:
        found = float(value)
    except ValueError:
        return None
    return int(found * 1000) if 0 <= found <= LATEST_MS else None


def _scaled(ms: float) -> int | None:
    return int(ms) * 1000 if 0 <= ms <= LATEST_MS else None


def _count(rest: Fields, name: bytes) -> int:
    """Returns a whole number; 0 for anything else, which then stays in `raw`."""
    value = rest.get(name)
    if value is None:
        return 0
    if value.isdigit() and len(value) <= 15 and (value[:1] != b"0" or len(value) == 1):
        del rest[name]
        return int(value)
    try:
        return max(-(2**53), min(int(value), 2**53))
    except ValueError:
        return 0


def _made(rest: Fields) -> int:
    """Returns the attempts made. Old clients wrote `attemptsMade`; a job with that field keeps both in `raw`."""
    if b"attemptsMade" not in rest:
        return _count(rest, b"atm")
    return _count(dict(rest), b"atm" if b"atm" in rest else b"attemptsMade")


def _due(created: int, delay: bytes | None) -> int | None:
    if delay is None or delay == b"0":
        return None
    try:
        wait = float(delay)
    except ValueError:
        return None
    due = created + wait * 1000
    return int(due) if wait > 0 and due <= LATEST_MS * 1000 else None


def _raw(rest: Fields, sides: Sides) -> str:
    raw: dict[str, Any] = {name.decode(): value.decode() for name, value in rest.items()}
    for ending, items in sides.items():
        texts = [item.decode() for item in items]
        if ending in _HASHES:
            half = len(texts) // 2
            raw[ending.decode()] = dict(zip(texts[:half], texts[half:], strict=True))
        else:
            raw[ending.decode()] = dict(zip(texts[::2], texts[1::2], strict=True)) if ending in _SCORED else texts
    # A hash has no order to keep, and a sorted one is the same at every read.
    return orjson.dumps(raw, option=orjson.OPT_SORT_KEYS).decode()
