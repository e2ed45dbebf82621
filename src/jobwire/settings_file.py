"""Finds the settings of a folder: the nearest `jobwire.toml`, or pyproject.toml with `[tool.jobwire]`, upwards."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from jobwire.errors import InvalidOption

FILE = "jobwire.toml"
KEYS = ("store", "stores", "pipeline")
"""The names that a settings file may have at its top."""


@dataclass(frozen=True, slots=True)
class SettingsFile:
    """A file, and jobwire's part of it."""

    file: Path
    values: dict[str, Any]


def nearest(folder: Path) -> SettingsFile | None:
    """Returns the settings that hold in a folder, or None."""
    for place in (folder, *folder.parents):
        for name in (FILE, "pyproject.toml"):
            if (place / name).is_file() and (found := read(place / name)) is not None:
                return found
    return None


def read(file: Path) -> SettingsFile | None:
    """Returns the settings in a file; None for a pyproject.toml without any. Raises InvalidOption for wrong TOML."""
    own = file.name != "pyproject.toml"
    stored = file.read_bytes()
    try:
        values: Any = tomllib.loads(stored.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        if not own and b"tool.jobwire" not in stored:
            return None  # the file of another tool, which reports its errors itself
        raise InvalidOption("settings", str(file), f"must be valid TOML: {error}") from error
    for key in () if own else ("tool", "jobwire"):
        values = cast("dict[str, Any]", values).get(key) if isinstance(values, dict) else None
    return SettingsFile(file, cast("dict[str, Any]", values)) if isinstance(values, dict) else None
