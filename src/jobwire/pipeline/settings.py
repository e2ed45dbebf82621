"""The pipeline's settings: `[pipeline]` of jobwire.toml, or `[tool.jobwire.pipeline]` of pyproject.toml."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from jobwire import settings_file, spelling
from jobwire.errors import InvalidOption
from jobwire.pipeline.history.tenants import NO_TENANTS, Tenants, parse_tenants
from jobwire.pipeline.privacy.rules import EVERYTHING_KEPT, KEY_VARIABLE, Privacy, parse_rules
from jobwire.pipeline.targets.target import NO_TARGETS, Targets, parse_targets

_KEYS = ("privacy", "targets", "tenants")


@dataclass(frozen=True)
class PipelineSettings:
    """The part of a settings file that is for the pipeline."""

    privacy: Privacy = EVERYTHING_KEPT
    targets: Targets = NO_TARGETS
    tenants: Tenants = NO_TENANTS


def read_settings(file: Path | None = None) -> PipelineSettings:
    """Returns the settings of a file, or of the nearest one from the current folder upwards. Raises InvalidOption with
    the place, the value and the rule."""
    if file is None:
        found = settings_file.nearest(Path.cwd())
    elif file.is_file():
        found = settings_file.read(file)
    else:
        raise InvalidOption("settings", str(file), "must be a file")
    given: Any = {} if found is None else found.values.get("pipeline", {})
    return parse_settings(given)


def parse_settings(given: Any) -> PipelineSettings:
    """Returns the settings of a table. The key of hashes is taken from the environment."""
    section = _table("pipeline", given)
    for key in section:
        if key not in _KEYS:
            near = spelling.closest(key, _KEYS)
            raise InvalidOption(
                "pipeline", key, f"must have {', '.join(_KEYS)} only{f'; did you mean {near}?' if near else ''}"
            )
    privacy, targets, tenants = (_table(f"pipeline.{key}", section.get(key, {})) for key in _KEYS)
    rules = parse_rules(privacy, os.environ.get(KEY_VARIABLE), "pipeline.privacy")
    return PipelineSettings(
        privacy=rules,
        targets=parse_targets(targets, "pipeline.targets"),
        tenants=parse_tenants(tenants, rules, "pipeline.tenants"),
    )


def _table(name: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise InvalidOption(name, value, "must be a table")
    return cast("Mapping[str, Any]", value)
