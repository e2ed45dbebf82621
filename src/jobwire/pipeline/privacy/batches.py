"""Applies the rules to rows of the tables `jobs` and `events`, where they become Arrow batches.

Payload, result and progress are covered by path. All other texts of a job are searched for the values that were covered
in it. Events don't have the payload of their job: it is looked up, and of an error whose job is gone only the
exception's name is kept. Results and progress in events are left out: the job's row has them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, cast

import pyarrow as pa

from jobwire import codec
from jobwire.errors import MalformedPayload
from jobwire.pipeline.lake.schemas import EVENTS, JOBS
from jobwire.pipeline.privacy.covering import GONE, MASK, Covered, cover, is_name
from jobwire.pipeline.privacy.rules import Privacy, QueueRules
from jobwire.pipeline.privacy.scrub import Scrubber, json_text, without_message
from jobwire.pipeline.stores.dialect import Dialect

_DOCUMENTS = {"payload": "$", "result": "result", "progress": "progress"}
_TEXTS = ("error", "stacktrace", "parent", "unique_key")
_JSON = ("result", "progress", "raw")
_NEVER_PRIVATE = frozenset(
    ("prev", "delay", "due", "ready", "start_after", "started_on", "retry_count", "priority", "estimated", "worker")
)
"""Members of an event's data that order a job's life."""
ID_REASON = "its id holds a value that the rules of privacy cover: neither the job nor its events can be kept"
_Row = dict[str, Any]


def private_jobs(
    batches: Iterator[pa.RecordBatch], privacy: Privacy, queue: str, dialect: Dialect
) -> Iterator[pa.RecordBatch]:
    """Yields rows of `jobs` as the lake may have them."""
    rules = privacy.of_queue(queue)
    children = _Children(privacy, dialect.children_members) if privacy.options else None
    for batch in batches:
        rows = cast("list[_Row]", batch.to_pylist()) if rules or (children and children.are_in(batch)) else None
        if rows is None:
            yield batch
            continue
        if children is not None:
            rows = [row | {"raw": children.covered(row["raw"])} for row in rows]
        if rules is not None:
            rows = [_job(row, rules, dialect.copies) for row in rows]
        yield pa.RecordBatch.from_pylist(rows, schema=JOBS.arrow)


def private_events(
    batches: Iterator[pa.RecordBatch],
    rules: QueueRules | None,
    payloads: Callable[[Sequence[str]], Mapping[str, str]],
    dialect: Dialect,
) -> Iterator[pa.RecordBatch]:
    """Yields rows of `events` as the lake may have them. `payloads` finds those of jobs by their ids."""
    if rules is None:
        yield from batches
        return
    for batch in batches:
        rows = cast("list[_Row]", batch.to_pylist())
        known = payloads(sorted({row["job_id"] for row in rows if row["job_id"] is not None}))
        scrubbers = {job_id: _scrubber_of(text, rules) for job_id, text in known.items()}
        made = [_event(row, rules, scrubbers.get(row["job_id"]), dialect.outcome_members) for row in rows]
        yield pa.RecordBatch.from_pylist(made, schema=EVENTS.arrow)


def _job(row: _Row, rules: QueueRules, copies: Mapping[str, str]) -> _Row:
    if row["malformed"] is not None:
        return _malformed_job(row)
    covered = Covered()
    documents = {column: _document(row[column], kind, rules, covered) for column, kind in _DOCUMENTS.items()}
    row = row | documents | {"raw": _without_copies(row["raw"], rules, copies)}
    own_words = {row["state"], row["native_state"], row["queue"]}
    scrub = Scrubber(covered.values - own_words)
    if not scrub:
        return row
    if scrub.finds_in_id(row["id"]):
        hashed = rules.digest(row["id"]) if rules.key else MASK
        return _malformed_job(row | {"malformed": ID_REASON}) | {"id": hashed}
    row |= {column: scrub.text(row[column]) for column in _TEXTS}
    if row["name"] is not None and not is_name(row["name"]):  # a name that a programmer chose may be a value by chance
        row["name"] = scrub.text(row["name"])
    return row | {column: scrub.json(row[column]) for column in _JSON}


def _without_copies(raw: str | None, rules: QueueRules, copies: Mapping[str, str]) -> str | None:
    """Returns the native fields without those that hold a document once more, in the protocol's own form."""
    covered = {rule.path.document for rule in rules.rules}
    members = [member for member, document in copies.items() if document in covered]
    if raw is None or not any(f'"{member}"' in raw for member in members):
        return raw
    fields = codec.loads(raw)
    return json_text({name: each for name, each in fields.items() if name not in members})


class _Children:
    """Outcomes of children that their parent's native fields hold."""

    def __init__(self, privacy: Privacy, members: Collection[str]) -> None:
        self._privacy, self._members = privacy, members

    def are_in(self, batch: pa.RecordBatch) -> bool:
        marks = [f'"{member}"' for member in self._members]
        texts = cast("list[str | None]", batch.column("raw").to_pylist()) if marks else []
        return any(mark in (text or "") for text in texts for mark in marks)

    def covered(self, raw: str | None) -> str | None:
        """Returns the native fields without outcomes of children whose queue has rules."""
        if raw is None or not any(f'"{member}"' in raw for member in self._members):
            return raw
        fields = codec.loads(raw)
        for member in self._members:
            if isinstance(of_children := fields.get(member), dict):
                fields[member] = {
                    key: json.dumps(MASK) if self._is_private(key) else outcome
                    for key, outcome in cast("_Row", of_children).items()
                }
        return json_text(fields)

    def _is_private(self, key: str) -> bool:
        *_, queue, _ = ["", "", *key.split(":")]
        return self._privacy.of_queue(queue) is not None


def _malformed_job(row: _Row) -> _Row:
    """Returns a job that can't be read without anything that could hold a value of its payload."""
    emptied: _Row = dict.fromkeys(
        ("payload", "result", "progress", "error", "stacktrace", "unique_key", "parent", "name")
    )
    return row | emptied | {"raw": "{}", "fingerprint": None, "malformed": _reason(row["malformed"])}


def _reason(text: str) -> str:
    """Returns the reason without what it quotes."""
    return text if text == ID_REASON else f"{text.partition(': ')[0]}: {MASK}"


def _document(text: str | None, kind: str, rules: QueueRules, covered: Covered) -> str | None:
    if text is None or all(rule.path.document != kind for rule in rules.rules):
        return text
    try:
        value = codec.loads(text)
    except MalformedPayload:
        return json.dumps(MASK)
    made = cover(value, kind, rules, covered)
    if made is GONE:
        return "null" if kind == "$" else None
    return text if made == value else json_text(made)


def _scrubber_of(payload: str, rules: QueueRules) -> Scrubber | None:
    """Returns the scrubber of a job's covered values, or None if its payload can't be read."""
    covered = Covered()
    try:
        cover(codec.loads(payload), "$", rules, covered)
    except MalformedPayload:
        return None
    return Scrubber(covered.values)


def _event(row: _Row, rules: QueueRules, scrub: Scrubber | None, outcomes: Collection[str]) -> _Row:
    if row["malformed"] is not None:
        return row | {"data": "{}", "malformed": _reason(row["malformed"])}
    if row["job_id"] is None:
        return row
    data: Any = codec.loads(row["data"]) if row["data"] else {}
    if isinstance(data, dict):
        kept = {name: each for name, each in cast("_Row", data).items() if name not in outcomes}
        data = _without_messages(kept) if scrub is None else kept | _searched(kept, scrub)
    if scrub is not None and scrub.finds_in_id(row["job_id"]):
        hashed = rules.digest(row["job_id"]) if rules.key else MASK
        own_id = row["id"].replace(row["job_id"], hashed)
        return row | {"id": own_id, "job_id": hashed, "data": "{}", "malformed": ID_REASON}
    return row | {"data": json_text(data)}


def _searched(data: _Row, scrub: Scrubber) -> _Row:
    """Returns the texts of an event without covered values."""
    texts = {name: each for name, each in data.items() if isinstance(each, str) and name not in _NEVER_PRIVATE}
    return {name: scrub.value(each) for name, each in texts.items()}


def _without_messages(data: _Row) -> _Row:
    """Returns what is left of an event whose job is gone: what orders its life, names, and the kind of its error."""
    kept = {name: each for name, each in data.items() if name in _NEVER_PRIVATE or name == "name"}
    errors = {name: data[name] for name in ("error", "failedReason") if data.get(name) is not None}
    return kept | {name: without_message(str(each)) for name, each in errors.items()}
