"""Typed values and their JSON forms.

| type | JSON |
|---|---|
| str, int, float, bool, None, list, dict with text keys | as it is |
| tuple, set, frozenset | array |
| datetime, date, time | text in RFC 3339: "2026-11-16T15:04:05Z" |
| timedelta | text in ISO 8601: "P1DT30S" |
| UUID, Decimal | text |
| Enum | its value |
| bytes | text in base64 |
| dataclass, TypedDict, msgspec Struct, attrs class, pydantic model | object |

`Form` is the form of one type. It checks values in both directions and names the path of what it refuses.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple, cast, is_typeddict

import msgspec
from msgspec import inspect as kinds

_LEAVES = frozenset({str, int, bool, type(None)})
_EXPECTED = re.compile(r"Expected `(.+?)`, got `(.+?)`")
_PLACE = re.compile(r" - at `\$(.*)`$", re.DOTALL)
_MISSING = re.compile(r"Object missing required field `(.+)`")


class Refusal(NamedTuple):
    """The place of a value that does not fit its type, and the rule: ("items[0].price", "must be float, not str")."""

    path: str
    rule: str


class Misfit(Exception):
    """A value does not fit its type."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(f"{refusal.path}: {refusal.rule}" if refusal.path else refusal.rule)
        self.refusal = refusal


class Form:
    """The JSON form of one type. Raises TypeError if the type has none."""

    def __init__(self, kind: Any) -> None:
        self.kind = kind
        self.is_any = kind is Any or kind is object
        self._leaf = next((leaf for leaf in _LEAVES if kind is leaf), None)
        """The type itself, if its values are JSON as they are."""
        info = kinds.type_info(kind)
        found = list(_types_in(info, set()))
        for one in found:
            if isinstance(one, kinds.CustomType) and not _is_pydantic(one.cls):
                raise TypeError(f"{_name(one.cls)} has no JSON form")
        self._has_objects = any(isinstance(one, _OBJECTS) for one in found)
        """True if a value may be an instance of a class, whose own fields may have been set to anything."""

    def read(self, value: Any) -> Any:
        """Returns the value that the JSON stands for. Raises Misfit."""
        if self.is_any or type(value) is self._leaf:
            return value
        try:
            return msgspec.convert(value, self.kind, str_keys=True, dec_hook=_read_other)
        except msgspec.ValidationError as error:
            raise Misfit(_refusal(str(error))) from None
        except RecursionError:
            raise Misfit(Refusal("", "is nested too deeply")) from None
        except UnicodeEncodeError:
            raise Misfit(Refusal("", "must be valid Unicode (it has a lone surrogate)")) from None

    def write(self, value: Any) -> Any:
        """Returns the value as JSON: dicts, lists, texts, numbers, booleans and None. Raises Misfit."""
        if self.is_any:
            return to_json(value)
        if type(value) is self._leaf:
            return value
        written = to_json(self.read(value))
        if self._has_objects:
            self.read(written)
        return written


def to_json(value: Any) -> Any:
    """Returns any value as JSON, by its run-time type. Raises Misfit if there is no form for it."""
    if type(value) in _LEAVES:
        return value
    try:
        return msgspec.to_builtins(value, str_keys=True, enc_hook=_write_other)
    except (TypeError, ValueError, RecursionError) as error:
        raise Misfit(Refusal("", str(error) or type(error).__name__)) from None


def is_object(kind: Any) -> bool:
    """Returns True for a class whose instances become a JSON object with the class's fields."""
    marks = ("__struct_fields__", "__dataclass_fields__", "__attrs_attrs__")
    return is_typeddict(kind) or _is_pydantic(kind) or any(hasattr(kind, mark) for mark in marks)


def field_names(kind: Any) -> tuple[str, ...]:
    """Returns the names of a class's fields in JSON."""
    if _is_pydantic(kind):
        return tuple(kind.model_fields)
    return tuple(field.encode_name for field in getattr(kinds.type_info(kind), "fields", ()))


# --- what msgspec does not know -----------------------------------------------------------------------------------


def _is_pydantic(kind: Any) -> bool:
    """Returns True for a pydantic model. There are none if pydantic has not been imported."""
    pydantic = sys.modules.get("pydantic")
    return pydantic is not None and isinstance(kind, type) and issubclass(kind, pydantic.BaseModel)


def _write_other(value: Any) -> Any:
    if _is_pydantic(type(value)):
        return value.model_dump(mode="json")
    raise TypeError(f"{_name(type(value))} has no JSON form")


def _read_other(kind: Any, value: Any) -> Any:
    """Reads a pydantic model. A ValueError that this raises gets the path by msgspec."""
    if isinstance(value, kind):
        return value
    try:
        return kind.model_validate(value)
    except ValueError as error:
        first: dict[str, Any] = cast("Any", error).errors()[0]
        path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in first["loc"])
        raise ValueError(f"{path}: {first['msg']}" if path else first["msg"]) from None


# --- types --------------------------------------------------------------------------------------------------------

_OBJECTS = (
    kinds.CustomType,
    kinds.DataclassType,
    kinds.NamedTupleType,
    kinds.StructType,
    kinds.TypedDictType,
)


def _types_in(info: Any, seen: set[int]) -> Iterator[Any]:
    """Yields the description of a type and of all types inside it."""
    if id(info) in seen:
        return
    seen.add(id(info))
    yield info
    for name in ("type", "item_type", "key_type", "value_type", "types", "item_types", "fields"):
        inner: Any = getattr(info, name, None)
        for one in cast("tuple[Any, ...]", inner if isinstance(inner, tuple) else (inner,)):
            if isinstance(one, kinds.Field):
                yield from _types_in(one.type, seen)
            elif isinstance(one, kinds.Type):
                yield from _types_in(one, seen)


def _name(kind: Any) -> str:
    return getattr(kind, "__qualname__", str(kind))


def _refusal(message: str) -> Refusal:
    """Returns msgspec's message in jobwire's words.

    >>> _refusal("Expected `str`, got `int` - at `$.to`")
    Refusal(path='to', rule='must be str, not int')
    >>> _refusal("Object missing required field `to` - at `$.mails[2]`")
    Refusal(path='mails[2].to', rule='is missing')
    """
    place = _PLACE.search(message)
    path = place[1].removeprefix(".") if place else ""
    rule = message[: place.start()] if place else message
    if expected := _EXPECTED.fullmatch(rule):
        return Refusal(path, f"must be {expected[1]}, not {expected[2]}")
    if missing := _MISSING.fullmatch(rule):
        return Refusal(f"{path}.{missing[1]}" if path else missing[1], "is missing")
    if rule.startswith((".", "[")) and ": " in rule:  # the path inside a pydantic model
        inner, rule = rule.split(": ", 1)
        path = f"{path}{inner}" if path else inner.removeprefix(".")
    return Refusal(path, rule[:1].lower() + rule[1:])
