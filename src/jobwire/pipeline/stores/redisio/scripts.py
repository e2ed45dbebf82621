"""Lua scripts of the pipeline's own, which build on the parts that the protocol's backend has.

A script is `<package>/scripts/<name>.lua`; its `--@include word` stands for `scripts/lib/word.lua` of the backend, so
that what belongs to a job, and what its removal means to others, is written down once.
"""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache
from importlib.resources import files

from jobwire.backends.redisio.scripts import Script

_INCLUDE = re.compile(r"^--@include (\S+)[ \t]*\n", re.MULTILINE)


@lru_cache(maxsize=32)
def load(package: str, name: str, backend: str) -> Script:
    """Returns the whole text of a script. Each part of the backend is included once, where it is first named."""
    library = files(backend) / "scripts" / "lib"
    text = (files(package) / "scripts" / f"{name}.lua").read_text("utf-8")
    taken: set[str] = set()
    while found := _INCLUDE.search(text):
        word = found[1]
        part = "" if word in taken else (library / f"{word}.lua").read_text("utf-8")
        taken.add(word)
        text = text[: found.start()] + part + text[found.end() :]
    return Script(text, hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest())
