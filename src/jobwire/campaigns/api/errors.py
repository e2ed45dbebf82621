"""Errors as JSON: `{"error": …}`, with `field`, `value` and `rule` if a value of the request is the cause."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import psycopg
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from jobwire.campaigns.channels_import import ImportRefused
from jobwire.campaigns.errors import Ambiguous, NotFound
from jobwire.campaigns.states import Ended, IllegalTransition
from jobwire.errors import Closed, InvalidOption, StoreRefused, StoreUnavailable, WrongState, shown

logger = logging.getLogger("jobwire.campaigns.api")

RETRY_AFTER = 5
"""Seconds after which a client should try again."""
_EXACT = 2**53
_LONGEST_VALUE = 200
_RULES = {
    "missing": "is missing",
    "int_type": "must be an integer",
    "int_parsing": "must be an integer",
    "int_from_float": "must be an integer",
    "string_type": "must be a string",
    "bool_parsing": "must be true or false",
    "dict_type": "must be a JSON object",
    "model_type": "must be a JSON object, sent with the content type application/json",
    "model_attributes_type": "must be a JSON object, sent with the content type application/json",
}
_CONSTRAINTS = {
    "channels_active_username": "another active channel has this username",
    "channels_username_shape": "the channel's username is not of the form @name",
}


def answer(status: int, error: str, headers: Mapping[str, str] | None = None, **details: Any) -> Response:
    """Returns a response in JSON. ASCII only, so that no text of a request can break it."""
    body = json.dumps({"error": error} | details, allow_nan=False)
    return Response(body, status, headers, media_type="application/json")


def add_handlers(app: FastAPI) -> None:
    """Registers the answer to each kind of error."""
    for kind, handler in (
        (NotFound, _not_found),
        (Ambiguous, _ambiguous),
        (WrongState, _wrong_state),
        (InvalidOption, _invalid),
        (ImportRefused, _import_refused),
        (RequestValidationError, _unreadable),
        (HTTPException, _http),
        (StoreUnavailable, _unavailable),
        (Closed, _unavailable),
        (psycopg.OperationalError, _unavailable),
        (psycopg.errors.UndefinedTable, _not_installed),
        (psycopg.errors.UndefinedColumn, _not_installed),
        (psycopg.errors.InvalidSchemaName, _not_installed),
        (psycopg.IntegrityError, _against_a_rule),
        (StoreRefused, _broken),
        (Exception, _broken),
    ):
        app.add_exception_handler(kind, handler)


async def _not_found(_: Request, error: Any) -> Response:
    return answer(404, str(error), field=error.kind, value=_plain(error.key))


async def _ambiguous(_: Request, error: Any) -> Response:
    return answer(409, str(error), field=error.kind, value=_plain(error.name), ids=list(error.ids))


async def _wrong_state(_: Request, error: Any) -> Response:
    if isinstance(error, IllegalTransition):
        return answer(409, str(error), field="status", value=str(error.current), wanted=str(error.wanted))
    if isinstance(error, Ended):
        return answer(409, str(error), field="status", value=str(error.current))
    return answer(409, str(error))


async def _invalid(_: Request, error: Any) -> Response:
    return _refused(error)


async def _import_refused(_: Request, error: Any) -> Response:
    report = error.report
    rule = f"{report.bad:,} of {report.lines:,} lines are bad"
    return answer(422, str(error), field="file", rule=rule, bad_lines=[asdict(line) for line in report.bad_lines])


async def _unreadable(_: Request, error: Any) -> Response:
    """Answers to a request that has not the shape of its model: with the first thing that is wrong in it."""
    first: Mapping[str, Any] = error.errors()[0]
    location: Sequence[Any] = first["loc"][1:]
    details: Mapping[str, Any] = first.get("ctx") or {}
    if first["type"] == "json_invalid":
        rule = f"is not JSON: {details.get('error', '')} at character {location[0] + 1}"
        return answer(422, f"body: {rule}", field="body", rule=rule)
    field = details.get("field") or ".".join(map(str, location)) or "body"
    rule = details.get("rule") or _RULES.get(first["type"]) or first["msg"]
    value = None if first["type"] == "missing" else details.get("value", first["input"])
    return _refused(InvalidOption(field, value, rule))


async def _http(_: Request, error: Any) -> Response:
    if error.status_code == 400:  # FastAPI's, for what no JSON parser reads: other encodings, numbers of 5,000 digits
        return answer(422, "body: can't be read as JSON", field="body", rule="can't be read as JSON")
    return answer(error.status_code, str(error.detail), error.headers)


async def _unavailable(_: Request, error: Any) -> Response:
    logger.warning("a request was answered with 503: %s", error)
    text = "the database is unavailable; if this was a change, look first whether it was made"
    return answer(503, text, {"Retry-After": str(RETRY_AFTER)})


async def _not_installed(_: Request, error: Any) -> Response:
    logger.error("a request was answered with 503: %s", error)
    return answer(503, "the database does not have the tables of campaigns: run `jobwire campaign init`")


async def _against_a_rule(_: Request, error: Any) -> Response:
    constraint = error.diag.constraint_name
    return answer(409, _CONSTRAINTS.get(constraint, "a rule of the database forbids this"), rule=constraint)


async def _broken(_: Request, error: Exception) -> Response:
    logger.error("a request was answered with 500: %s", error, exc_info=error)
    return answer(500, "internal error; the server's log has the details")


def _refused(error: InvalidOption) -> Response:
    return answer(422, str(error), field=error.field, value=_plain(error.value), rule=error.rule)


def _plain(value: Any) -> Any:
    """Returns a value as it was given if JSON can hold it shortly and exactly, else as text."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int) and abs(value) < _EXACT:
        return value
    if isinstance(value, str) and len(value) <= _LONGEST_VALUE:
        return value
    return shown(value)
