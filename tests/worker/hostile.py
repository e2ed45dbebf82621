"""Handlers for child processes that raise what is hard to report."""

from __future__ import annotations

import os
import sys
import threading
import time
from typing import Any

from jobwire import Snooze, Unrecoverable


class NoText(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


class NoTextAtAll(NoText):
    def __repr__(self) -> str:
        raise SystemExit("no text either")


class NoTextFinal(Unrecoverable):
    def __str__(self) -> str:
        raise KeyboardInterrupt


class OwnText(str):
    def __reduce__(self) -> Any:
        raise TypeError("can't be pickled")


class TextOfItsOwn(Exception):
    def __str__(self) -> str:
        return OwnText("a text of its own class")


class OwnSnooze(Snooze):
    """Takes other arguments than the class above it, and holds what can't be pickled."""

    def __init__(self, lock: Any, *, why: str) -> None:
        super().__init__(0.05, why)
        self.lock = lock


class Resolute(BaseException):
    pass


class Meta(type):
    @property
    def __name__(cls) -> str:  # type: ignore[override]
        raise RuntimeError("no name")


class Nameless(NoText, metaclass=Meta):
    pass


REASONS = {
    "no text": "NoText",
    "no text at all": "NoTextAtAll",
    "no text, final": "NoTextFinal",
    "own text": "a text of its own class",
    "nameless": "Nameless",
    "base": "Resolute",
    "interrupt": "KeyboardInterrupt",
    "generator": "GeneratorExit",
    "empty": "ValueError",
    "surrogate": "bad \\ud800",
    "snooze that can't be pickled": "",
    "result object": "result",
    "deep result": "result",
}


def pid(job: Any) -> int:
    return os.getpid()


def handle(job: Any) -> Any:
    match job.data:
        case "pid":
            return os.getpid()
        case "no text":
            raise NoText
        case "no text at all":
            raise NoTextAtAll
        case "no text, final":
            raise NoTextFinal
        case "own text":
            raise TextOfItsOwn
        case "nameless":
            raise Nameless
        case "base":
            raise Resolute
        case "interrupt":
            raise KeyboardInterrupt
        case "generator":
            raise GeneratorExit
        case "empty":
            raise ValueError
        case "surrogate":
            raise ValueError("bad \ud800")
        case "snooze that can't be pickled":
            raise Snooze(threading.Lock())  # type: ignore[arg-type]
        case "own snooze":
            if job.progress is not None:
                return "snoozed before"
            job.update_progress(1)
            raise OwnSnooze(threading.Lock(), why="later")
        case "result object":
            return object()
        case _:
            deep: Any = []
            for _ in range(100_000):
                deep = [deep]
            return deep


def fork_and_return(job: Any) -> str:
    """Forks in the first job, whose copy returns while the second job runs in the same process."""
    if job.data == "first":
        reading, writing = os.pipe()
        copy = os.fork()
        if copy == 0:
            os.read(reading, 1)
            return "from the copy"
        _left.extend((copy, writing))
        return "first"
    copy, writing = _left
    os.write(writing, b"x")
    os.waitpid(copy, 0)
    return "second"


def end_oddly(job: Any) -> None:
    if job.data == "signal":
        os.kill(os.getpid(), 40)  # a real-time signal, which has no name
        time.sleep(600)
    sys.exit(0)


_left: list[Any] = []


def leave_a_thread(job: Any) -> str:
    if job.data == "first":
        _left.append(job)
        return "left a thread"
    try:
        _left[0].update_progress("from the first job")
    except Exception as error:
        return type(error).__name__
    return "spoke"
