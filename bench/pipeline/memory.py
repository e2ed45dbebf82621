"""Resident memory of this process and of those that Spark started for it, looked at while something runs."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Self

import psutil

EVERY = 0.2
KINDS = ("java", "workers", "driver")
_MIB = 1024 * 1024


class Memory:
    """The most MiB that each kind of process had at once: Spark's Java, its Python workers together, this process.

    Pages that workers share count for each of them.
    """

    def __init__(self) -> None:
        self.most = dict.fromkeys(KINDS, 0.0)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()

    def _look(self) -> None:
        here = psutil.Process()
        while True:
            now = dict.fromkeys(KINDS, 0.0)
            for process in [here, *here.children(recursive=True)]:
                try:
                    kind = _kind(process, here.pid)
                    if kind is not None:
                        now[kind] += process.memory_info().rss / _MIB
                except psutil.NoSuchProcess:
                    continue
            self.most = {kind: round(max(self.most[kind], now[kind]), 1) for kind in KINDS}
            if self._stop.wait(EVERY):
                return


def _kind(process: psutil.Process, here: int) -> str | None:
    if process.pid == here:
        return "driver"
    command = process.cmdline()
    if any("org.apache.spark" in word for word in command) and "java" in process.name():
        return "java"
    return "workers" if "pyspark.daemon" in command else None


def cpu_of_java() -> float:
    """The seconds of a core that Spark's Java has used so far."""
    here, seconds = psutil.Process(), 0.0
    for process in here.children(recursive=True):
        try:
            if _kind(process, here.pid) == "java":
                used = process.cpu_times()
                seconds += used.user + used.system
        except psutil.NoSuchProcess:  # one that ended meanwhile
            continue
    return seconds
