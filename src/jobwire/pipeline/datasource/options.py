"""The options of `format("jobwire")`, checked before anything is read or written."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, cast

from jobwire import codec
from jobwire.errors import InvalidOption, MalformedPayload
from jobwire.model import State
from jobwire.pipeline.datasource.source_options import DEFAULT_PARTS, SourceOptions
from jobwire.pipeline.datasource.tables import TABLES
from jobwire.pipeline.privacy.rules import EVERYTHING_KEPT, from_option
from jobwire.pipeline.stores.boundary import Wanted
from jobwire.redact import redact_url
from jobwire.spelling import closest

KNOWN = {
    "url": "the store of the queue, protocol+transport://…, or the campaigns' database, postgresql://…",
    "queue": "the queue's name; for reading, without one: all queues of the store",
    "queues": "several queues to read, as a JSON array of names",
    "table": "jobs or events of queues, or one of a campaigns' database: campaigns, deliveries, channels",
    "store": "fills the column `store` (default: the URL without its login)",
    "parts": f"how many partitions to read jobs in (default {DEFAULT_PARTS})",
    "states": "read only jobs in these states, separated by commas",
    "names": "read only jobs with these names, separated by commas",
    "created_from": "read only jobs created at or after this time (ISO 8601)",
    "created_before": "read only jobs created before this time",
    "finished_from": "of finished jobs, read only those finished at or after this time",
    "finished_before": "of finished jobs, read only those finished before this time",
    "changed_from": "read only deliveries that may have changed since this time",
    "pushdown": "true: take filters of the query along; needs spark.sql.python.filterPushdown.enabled",
    "max_rows": "events in one micro-batch, at most (default: all there are)",
    "begin": "where a new stream of events begins: offsets by queue, as a JSON object (default: the oldest events)",
    "run": "names the load: ids derived from rows are the same in every attempt of one run",
    "privacy_secret": "rules of privacy for what is read, as Privacy.options writes them",
    "size_limit": "largest job to write, in bytes (default 10 MB; 0: none)",
}
_SPARKS_OWN = {"path", "checkpointlocation"}
"""Options that Spark hands on together with the data source's own."""


def parse_options(given: Mapping[str, str]) -> SourceOptions:
    """Returns the options. Raises InvalidOption with the field, the value and the rule."""
    options = {name.lower(): value for name, value in given.items()}
    unknown = sorted(set(options) - set(KNOWN) - _SPARKS_OWN)
    if unknown:
        raise InvalidOption(unknown[0], options[unknown[0]], f"is not an option; there are {', '.join(KNOWN)}")
    table = options.get("table", "jobs")
    if table not in TABLES:
        near = closest(table, TABLES)
        hint = f"; did you mean {near}?" if near else ""
        raise InvalidOption("table", table, f"must be one of {', '.join(TABLES)}{hint}")
    kind = TABLES[table]
    if foreign := sorted(set(options) & set(KNOWN) - kind.options):
        taken = ", ".join(name for name in KNOWN if name in kind.options)
        raise InvalidOption(foreign[0], options[foreign[0]], f"is not an option of table={table}, which takes {taken}")
    url = _url(options) or kind.default_url()
    size_limit = _whole(options, "size_limit", minimum=0)
    return SourceOptions(
        url=url,
        queues=_queues(options.get("queue"), options.get("queues")),
        table=table,
        store=options.get("store") or kind.store_name(url),
        parts=_whole(options, "parts", minimum=1) or DEFAULT_PARTS,
        wanted=Wanted(
            states=_states(options.get("states")),
            names=_some(options.get("names")),
            created_from=_time(options, "created_from"),
            created_before=_time(options, "created_before"),
            finished_from=_time(options, "finished_from"),
            finished_before=_time(options, "finished_before"),
        ),
        changed_from=_time(options, "changed_from"),
        pushdown=_flag(options, "pushdown"),
        max_rows=_whole(options, "max_rows", minimum=1),
        run=options.get("run"),
        privacy=from_option(options["privacy_secret"]) if "privacy_secret" in options else EVERYTHING_KEPT,
        begin=_offsets(options.get("begin")),
        size_limit=10 * 1024 * 1024 if size_limit is None else size_limit or None,
    )


def _url(options: Mapping[str, str]) -> str | None:
    """Returns the URL, which may also be given as the path of `load(url)`."""
    url, path = options.get("url"), options.get("path")
    if url and path and url != path:
        raise InvalidOption("url", redact_url(url), f"can't be given together with another path, {redact_url(path)}")
    return url or path


def _queues(one: str | None, several: str | None) -> tuple[str, ...] | None:
    if several is None:
        if one == "":
            raise InvalidOption("queue", one, "must name a queue")
        return None if one is None else (one,)
    if one is not None:
        raise InvalidOption("queues", several, "can't be given together with queue")
    names = _json(several)
    if not isinstance(names, list) or not all(isinstance(name, str) and name for name in cast("list[Any]", names)):
        raise InvalidOption("queues", several, "must be a JSON array of names")
    return tuple(cast("list[str]", names))


def _offsets(value: str | None) -> Mapping[str, Any]:
    offsets = {} if value is None else _json(value)
    if not isinstance(offsets, dict):
        raise InvalidOption("begin", value, "must be a JSON object of offsets by queue")
    return cast("dict[str, Any]", offsets)


def _json(value: str) -> Any:
    """Returns the value of a JSON text, or None for any other text."""
    try:
        return codec.loads(value.encode())
    except MalformedPayload:
        return None


def _some(value: str | None) -> frozenset[str] | None:
    return None if value is None else frozenset(part.strip() for part in value.split(","))


def _states(value: str | None) -> frozenset[State] | None:
    names = _some(value)
    if names is None:
        return None
    unknown = sorted(names - set(State))
    if unknown:
        raise InvalidOption("states", value, f"must be of {', '.join(State)}")
    return frozenset(State(name) for name in names)


def _whole(options: Mapping[str, str], name: str, *, minimum: int) -> int | None:
    value = options.get(name)
    if value is None:
        return None
    if not value.isascii() or not value.isdigit() or int(value) < minimum:
        raise InvalidOption(name, value, f"must be a whole number of at least {minimum}")
    return int(value)


def _flag(options: Mapping[str, str], name: str) -> bool:
    value = options.get(name, "false").lower()
    if value not in ("true", "false"):
        raise InvalidOption(name, value, "must be true or false")
    return value == "true"


def _time(options: Mapping[str, str], name: str) -> datetime | None:
    value = options.get(name)
    if value is None:
        return None
    try:
        time = datetime.fromisoformat(value)
    except ValueError:
        raise InvalidOption(name, value, "must be a time such as 2026-01-31T12:00:00Z") from None
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)
