"""Notices changes of Python files, for `jobwire worker --reload`: by their times and sizes, read twice a second."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

_EVERY = 0.5
_SKIPPED = {"node_modules", "__pycache__", "site-packages"}

Seen = dict[str, tuple[int, int]]


class SourceFiles:
    """The .py files below some folders, without hidden folders, virtual environments and node_modules."""

    def __init__(self, folders: Sequence[Path]) -> None:
        found = {folder.resolve() for folder in folders}
        self._folders = [folder for folder in found if not any(other in folder.parents for other in found)]
        self._seen = self._read()

    async def next(self) -> str:
        """Returns the names of changed, new and removed files, once there are some."""
        while True:
            await asyncio.sleep(_EVERY)
            before, self._seen = self._seen, await asyncio.to_thread(self._read)
            changed = sorted(name for name, _ in before.items() ^ self._seen.items())
            if changed:
                names = list(dict.fromkeys(Path(name).name for name in changed))
                return ", ".join(names[:3]) + (", …" if len(names) > 3 else "")

    def _read(self) -> Seen:
        return {entry.path: times for folder in self._folders for entry, times in _python_files(folder)}


def _python_files(folder: Path | str) -> Iterator[tuple[os.DirEntry[str], tuple[int, int]]]:
    try:
        with os.scandir(folder) as entries:
            listed = list(entries)
    except OSError:
        return  # removed meanwhile, or not ours to read
    if any(entry.name == "pyvenv.cfg" for entry in listed):
        return
    for entry in listed:
        if entry.name.startswith(".") or entry.name in _SKIPPED:
            continue
        try:
            if entry.is_dir(follow_symlinks=False):
                yield from _python_files(entry.path)
            elif entry.name.endswith(".py"):
                about = entry.stat()
                yield entry, (about.st_mtime_ns, about.st_size)
        except OSError:
            continue
