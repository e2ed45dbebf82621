"""Bearer tokens and the roles that they give.

A token is kept as its SHA-256 only, and compared in constant time with every known one. No log line, error or `repr`
has a token in it.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, cast

from jobwire import checks
from jobwire.errors import InvalidOption
from jobwire.spelling import closest, unknown

logger = logging.getLogger("jobwire.serving")

SHORTEST = 20
HIDDEN = "***"
_SHAPE = re.compile(r"[A-Za-z0-9._~+/-]+=*")


class Role(StrEnum):
    """The roles, each with the rights of those before it."""

    VIEWER = "viewer"
    """Reads everything."""
    OPERATOR = "operator"
    """Runs what is there: campaigns, jobs, queues."""
    ADMIN = "admin"
    """Changes what is there: channels and templates, limits; deletes jobs."""

    def includes(self, needed: Role) -> bool:
        """Returns True if this role has the rights of the other.

        >>> Role.OPERATOR.includes(Role.VIEWER), Role.OPERATOR.includes(Role.ADMIN)
        (True, False)
        """
        order = list(Role)
        return order.index(self) >= order.index(needed)


@dataclass(frozen=True, slots=True)
class Caller:
    """The name and the role of a token."""

    name: str | None
    role: Role


OPEN = Caller(None, Role.ADMIN)
"""The caller of an application without tokens."""


@dataclass(frozen=True, slots=True)
class Token:
    """A token with its name and role. Checked when it is made.

    >>> Token("ann", "admin", "a-long-random-text-of-letters")
    Token(name='ann', role=<Role.ADMIN: 'admin'>)
    """

    name: str
    role: Role
    secret: str = field(repr=False)

    def __init__(self, name: str, role: str, secret: str) -> None:
        checks.text("name", name)
        if role not in list(Role):
            near = closest(str(role), list(Role))
            hint = f"; did you mean {near}?" if near else ""
            raise InvalidOption(f"{name}.role", role, f"must be viewer, operator or admin{hint}")
        given: Any = secret
        if not isinstance(given, str) or not _SHAPE.fullmatch(given) or len(given) < SHORTEST:
            rule = f"must have at least {SHORTEST} characters: letters, digits and . _ ~ + / - only"
            raise InvalidOption(f"{name}.token", HIDDEN, rule)
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "role", Role(role))
        object.__setattr__(self, "secret", secret)


class Tokens:
    """The tokens that an application accepts."""

    def __init__(self, tokens: Iterable[Token]) -> None:
        self._callers: list[tuple[bytes, Caller]] = []
        for token in tokens:
            digest = _digest(token.secret)
            for known, caller in self._callers:
                if caller.name == token.name:
                    raise InvalidOption("tokens", token.name, "has two tokens of this name")
                if known == digest:
                    raise InvalidOption(f"{token.name}.token", HIDDEN, f"is the token of {caller.name} too")
            self._callers.append((digest, Caller(token.name, token.role)))

    def __len__(self) -> int:
        return len(self._callers)

    def __repr__(self) -> str:
        return f"Tokens({', '.join(f'{caller.name}: {caller.role}' for _, caller in self._callers)})"

    @classmethod
    def from_file(cls, file: str | Path) -> Tokens:
        """Reads a TOML file with a table for each token, `[name]` with `role` and `token`."""
        path = Path(file)
        try:
            read = tomllib.loads(path.read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError):
            # The parser's own message may quote the file.
            raise InvalidOption("tokens", str(path), "is not a TOML file in UTF-8") from None
        if path.stat().st_mode & 0o044:
            logger.warning("%s can be read by other users of this machine; chmod 600 keeps its tokens secret", path)
        return cls([_of_table(name, table) for name, table in read.items()])

    @classmethod
    def from_environment(cls, environment: Mapping[str, str], variable: str) -> Tokens:
        """Reads a variable of the environment: NAME:ROLE:TOKEN, several separated by spaces."""
        found: list[Token] = []
        for number, text in enumerate(environment.get(variable, "").split(), 1):
            parts = text.split(":")
            if len(parts) != 3:
                raise InvalidOption(f"{variable} {number}", HIDDEN, "must be NAME:ROLE:TOKEN")
            found.append(Token(*parts))
        return cls(found)

    def caller_of(self, secret: str) -> Caller | None:
        """Returns the caller with this token. Compares with all tokens, in the same time whether one matches or not."""
        digest = _digest(secret)
        found: Caller | None = None
        for known, caller in self._callers:
            if hmac.compare_digest(known, digest):
                found = caller
        return found


def _of_table(name: str, table: Any) -> Token:
    if not isinstance(table, dict):
        raise InvalidOption(name, HIDDEN, 'must be a table with the keys role and token, such as [ann] role = "admin"')
    fields = cast("dict[str, Any]", table)
    for key in fields:
        if key not in ("role", "token"):
            raise unknown(key, HIDDEN, ("role", "token"), f"token {name!r}")
    for key in ("role", "token"):
        if key not in fields:
            raise InvalidOption(f"{name}.{key}", None, "is missing")
    return Token(name, fields["role"], fields["token"])


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "replace")).digest()
