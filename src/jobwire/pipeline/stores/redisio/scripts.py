"""Lua scripts of the pipeline, which include the backend's own parts.

A script is `<package>/scripts/<name>.lua`. Its `--@include word` stands for `scripts/lib/word.lua` of the backend, so
that the keys of a job, and what its removal means to others, are written down once.
"""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files

from jobwire.backends.redisio.scripts import Script, script_of


@lru_cache(maxsize=32)
def load(package: str, name: str, backend: str) -> Script:
    """Returns a script with its includes expanded."""
    return script_of((files(package) / "scripts" / f"{name}.lua").read_text("utf-8"), backend)
