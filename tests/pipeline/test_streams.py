"""Streams of one process: the first starts alone."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

from jobwire.pipeline.spark.streams import StreamStarter


class Stream:
    """A stream as far as the starter is concerned: it begins to read when it is asked to, or fails."""

    def __init__(self, *, fails: bool = False) -> None:
        self.started = Event()
        self.reads = Event()
        self.isActive = not fails

    @property
    def lastProgress(self) -> dict[str, Any] | None:  # noqa: N802 Spark's name
        return {"batchId": 0} if self.reads.is_set() else None

    def start(self) -> Any:
        self.started.set()
        return self


def test_others_start_when_the_first_has_begun_to_read() -> None:
    starter = StreamStarter()
    first, second, third = Stream(), Stream(), Stream()
    with ThreadPoolExecutor(2) as threads:
        of_first = threads.submit(starter.start, first)  # type: ignore[arg-type]
        assert first.started.wait(60)
        of_second = threads.submit(starter.start, second)  # type: ignore[arg-type]
        assert not of_first.done()
        assert not second.started.wait(0.1)
        first.reads.set()
        assert of_second.result(60) is second
    assert starter.start(third) is third  # type: ignore[arg-type]
    assert not third.reads.is_set()


def test_others_start_when_the_first_has_failed() -> None:
    starter, broken, sound = StreamStarter(), Stream(fails=True), Stream()
    starter.start(broken)  # type: ignore[arg-type]
    starter.start(sound)  # type: ignore[arg-type]
    assert sound.started.is_set()
