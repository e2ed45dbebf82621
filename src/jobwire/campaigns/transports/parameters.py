"""Fills the parameters of a transport's class from an address and from environment variables."""

from __future__ import annotations

import inspect
import re
import types
from collections.abc import Iterable, Mapping
from typing import Any, Union, get_args, get_origin, get_type_hints

from jobwire.errors import InvalidOption
from jobwire.spelling import unknown

_SECRET = re.compile(r"secret|token|passw|hash|session|credential|(^|_)key($|_)|private")
_YES = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}
_PLAIN = (str, bool, int, float)
HIDDEN = "a hidden value"


def arguments_of(
    kind: type[Any], name: str, rest: str, options: Iterable[tuple[str, str]], environment: Mapping[str, str]
) -> dict[str, Any]:
    """Returns the keyword arguments for a transport's class, converted to the types of its parameters."""
    what = f"transport {name}"
    expected = _parameters(kind)
    given = _given(what, name, options, option_names(kind))
    found: dict[str, Any] = {}
    if rest:
        if "address" not in expected:
            raise InvalidOption("transport", HIDDEN, f"{name} takes no address; write {name}: or {name}:?option=value")
        found["address"] = rest
    for option, kind_of_value in expected.items():
        variable = variable_of(name, option)
        if option in given:
            found[option] = converted(option, given[option], kind_of_value)
        elif option != "address" and environment.get(variable):
            found[option] = converted(variable, environment[variable], kind_of_value, hidden=is_secret(option))
    for option, parameter in inspect.signature(kind).parameters.items():
        if parameter.default is parameter.empty and option in expected and option not in found:
            source = f"set the environment variable {variable_of(name, option)}"
            rule = f"is needed by {what}: " + (f"write {name}:ADDRESS" if option == "address" else source)
            raise InvalidOption(option, None, rule)
    return found


def option_names(kind: type[Any]) -> list[str]:
    """Returns the names of the options that a transport's class takes."""
    return [one for one in _parameters(kind) if one != "address"]


def variable_of(name: str, option: str) -> str:
    """Returns the environment variable of an option.

    >>> variable_of("sms-gateway", "token")
    'SMS_GATEWAY_TOKEN'
    """
    return re.sub("[^A-Z0-9]", "_", f"{name}_{option}".upper())


def is_secret(option: str) -> bool:
    """Returns True for an option that must not stand in an address.

    >>> is_secret("api_hash"), is_secret("key"), is_secret("keyboard"), is_secret("timeout")
    (True, True, False, False)
    """
    return _SECRET.search(option) is not None


def converted(field: str, value: str, kind: Any, *, hidden: bool = False) -> Any:
    """Returns the text of an option as the type of its parameter."""
    try:
        if kind is bool:
            return _YES[value.strip().lower()]
        return kind(value.strip()) if kind in (int, float) else value
    except (ValueError, KeyError):
        words = {bool: "true or false", int: "a whole number", float: "a number"}
        raise InvalidOption(field, HIDDEN if hidden else value, f"must be {words[kind]}") from None


def _given(what: str, name: str, options: Iterable[tuple[str, str]], expected: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for option, value in options:
        secret = is_secret(option)
        if option not in expected:
            raise unknown(option, HIDDEN if secret else value, expected, what)
        if secret:
            variable = variable_of(name, option)
            raise InvalidOption(
                option, HIDDEN, f"must not stand in an address; set the environment variable {variable}"
            )
        if option in found:
            raise InvalidOption(option, value, "must be given once")
        found[option] = value
    return found


def _parameters(kind: type[Any]) -> dict[str, Any]:
    """Returns the parameters that text can fill, with their types. A parameter without a type gets text."""
    try:
        hints = get_type_hints(kind.__init__)
    except NameError:  # a type that is imported for type checkers only
        hints = {}
    found: dict[str, Any] = {}
    for name, parameter in inspect.signature(kind).parameters.items():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            continue
        if (plain := _plain(hints.get(name, str))) is not None:
            found[name] = plain
    return found


def _plain(hint: Any) -> Any:
    """Returns the plain type in a type, or None if text can't become a value of it."""
    if get_origin(hint) in (Union, types.UnionType):
        found = [one for one in map(_plain, get_args(hint)) if one is not None]
        return found[0] if found else None
    return hint if hint in _PLAIN else None
