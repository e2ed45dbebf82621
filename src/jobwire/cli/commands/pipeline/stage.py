"""Progress of a command: in a terminal the stage, a count and the time; elsewhere a line per stage."""

# ruff: noqa: PLC0415 - what a command works with is imported when it runs, so that --help answers at once

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from functools import cache
from threading import Event
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from rich.status import Status

    from jobwire.pipeline.lake.lake import Lake
    from jobwire.pipeline.spark.progress import Progress


class Stages:
    """Implements Progress."""

    def __init__(self, status: Status | None) -> None:
        self._status = status
        self._stage = ""
        self._began = time.monotonic()

    def __call__(self, stage: str, done: int, total: int | None) -> None:
        from jobwire.cli.output import printable, remark

        text = printable(stage)
        if self._status is not None:
            amount = f" {done:,}" if done else ""
            amount += f" of {total:,}" if total else ""
            self._status.update(f"{text}[dim]{amount}, {time.monotonic() - self._began:.0f} s[/dim]")
        elif stage != self._stage:
            remark(text)
        self._stage = stage


@contextmanager
def staged(*, quiet: bool) -> Generator[Progress]:
    """Yields a Progress that prints to stderr, or with `quiet` one that prints nothing."""
    from jobwire.pipeline.spark.progress import silent

    if quiet:
        yield silent
    elif not sys.stderr.isatty():
        yield Stages(None)
    else:
        from rich.console import Console

        with Console(stderr=True).status("") as status:
            yield Stages(status)


def started(master: str | None, conf: Mapping[str, str], progress: Progress) -> SparkSession:
    """Starts the Spark session of a command."""
    return session_when_needed(master, conf, progress)()


def session_when_needed(
    master: str | None,
    conf: Mapping[str, str],
    progress: Progress,
    lake: Lake | None = None,
    *,
    brief: bool = False,
    local: str | None = None,
) -> Callable[[], SparkSession]:
    """Returns a function that starts the Spark session of a command at its first call, for little work if that is so
    (`brief`) or if the lake is little. Without a master it is a warm one of `jobwire pipeline serve`, or `local`."""
    from jobwire.pipeline.spark.session import spark_session

    @cache
    def session() -> SparkSession:
        warm = None if local is not None else _served(master, conf)
        if warm is not None:
            progress("using the Spark of `jobwire pipeline serve`", 0, None)
            return spark_session(warm)
        progress("starting Spark", 0, None)
        with interrupted_later(lambda: progress("stopping as soon as Spark has started", 0, None)):
            return spark_session(
                master, conf, brief=brief or (lake is not None and lake.is_little), local=local or "local[*]"
            )

    return session


def _served(master: str | None, conf: Mapping[str, str]) -> str | None:
    """Returns the URL of a warm Spark in this folder, if there is one and the command line asks for no other."""
    from jobwire.cli.output import remark
    from jobwire.pipeline.spark.served import NotServed, found, is_wanted

    if not is_wanted(master, conf):
        return None
    try:
        served = found()
    except NotServed as reason:
        remark(f"{reason}; it is ignored")
        return None
    return None if served is None else served.url


@contextmanager
def interrupted_later(on_interrupt: Callable[[], None]) -> Generator[None]:
    """Puts Ctrl-C off until the end of the block. PySpark that is interrupted while it starts its Java process leaves
    that running for good."""
    came = Event()

    def note(_number: int, _frame: object) -> None:
        came.set()
        on_interrupt()

    before = signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if came.is_set():
            signal.raise_signal(signal.SIGINT)


@contextmanager
def interrupted() -> Generator[Event]:
    """Yields an event that Ctrl-C and SIGTERM set, instead of ending the process at once."""
    stop = Event()

    def end(_number: int, _frame: object) -> None:
        stop.set()

    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
