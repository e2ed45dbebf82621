"""Every duration of the public face, which the pipeline belongs to, is a number of seconds or a timedelta."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from datetime import timedelta
from types import ModuleType
from typing import Any

import pytest

from jobwire import Backoff, NewJob, Unique
from jobwire.options import JobOptions

FACES = (
    "jobwire",
    "jobwire.native",
    "jobwire.sync",
    "jobwire.embedded",
    "jobwire.backends.monque",
    "jobwire.backends.pgboss",
    "jobwire.observe.health",
    "jobwire.observe.metrics",
    "jobwire.observe.tracing",
    "jobwire.pipeline",
    "jobwire.pipeline.archive.archive",
    "jobwire.pipeline.history.ingest_forever",
    "jobwire.pipeline.load.load",
    "jobwire.pipeline.move.move",
    "jobwire.testing",
)
DURATION = re.compile(
    r"(^|_)(age|cap|delay|duration|every|expires|fresh_for|interval|lease|max_backoff|older_than|per|period|poll|seconds"
    r"|timeout|ttl|wait_for_store)$"
)
NUMBER = re.compile(r"\b(float|int)\b")
BOTH = re.compile(r"\b(Seconds|timedelta)\b")
NOT_DURATIONS = {"jitter", "now"}
"""Parameters that are a share or a moment."""
READ_ONLY = {"Health", "Limits", "Schedule", "Statistics"}
"""Classes that users get and do not make. Their durations are seconds."""


def callables_of(name: str, found: Any) -> Iterator[tuple[str, Any]]:
    if inspect.isclass(found):
        if found.__name__ in READ_ONLY or not found.__module__.startswith("jobwire"):
            return
        for member in dir(found):
            if member == "__init__" or not member.startswith("_"):
                attribute = inspect.getattr_static(found, member)
                function = attribute.__func__ if isinstance(attribute, (classmethod, staticmethod)) else attribute
                if inspect.isfunction(function) and function.__module__.startswith("jobwire"):
                    yield f"{name}.{member}", function
    elif inspect.isfunction(found) and found.__module__.startswith("jobwire"):
        yield name, found


def names_of(module: ModuleType) -> Iterator[str]:
    for name, found in vars(module).items():
        if not name.startswith("_") and getattr(found, "__module__", None) == module.__name__:
            yield name


def parameters() -> Iterator[tuple[str, str, str]]:
    """Yields (path, name, annotation) for every parameter of the public face."""
    for face in FACES:
        module = importlib.import_module(face)
        for name in getattr(module, "__all__", None) or names_of(module):
            for path, function in callables_of(f"{face}.{name}", getattr(module, name)):
                for one in inspect.signature(function).parameters.values():
                    yield path, one.name, str(one.annotation)


def is_number_of_seconds(name: str, annotation: str) -> bool:
    """True for a parameter that is, or may be, a duration and takes no timedelta."""
    if BOTH.search(annotation) or name in NOT_DURATIONS:
        return False
    return annotation in ("float", "float | None") or bool(DURATION.search(name) and NUMBER.search(annotation))


def test_every_duration_of_the_public_face_takes_seconds_and_timedeltas():
    found = list(parameters())
    assert [f"{path}({name}: {kind})" for path, name, kind in found if is_number_of_seconds(name, kind)] == []
    both = {f"{path}({name})" for path, name, kind in found if BOTH.search(kind)}
    assert both >= {
        "jobwire.Worker.__init__(lease)",
        "jobwire.Queue.claim(timeout)",
        "jobwire.Connection.open(wait_for_store)",
        "jobwire.Backoff.__init__(cap)",
        "jobwire.native.PgBossWorker.__init__(poll)",
        "jobwire.sync.Queue.wait(timeout)",
        "jobwire.backends.pgboss.Boss.throttled(seconds)",
        "jobwire.observe.metrics.Metrics.__init__(fresh_for)",
        "jobwire.pipeline.history.ingest_forever.follow(every)",
        "jobwire.pipeline.move.move.move(drain_timeout)",
    }, sorted(both)


@pytest.mark.parametrize(
    ("name", "annotation"),
    [("timeout", "float"), ("poll_seconds", "int"), ("every", "float | None"), ("patience", "float"), ("ttl", "int")],
)
def test_a_new_duration_that_takes_no_timedelta_would_be_found(name, annotation):
    assert is_number_of_seconds(name, annotation)


def test_the_options_of_a_job_take_both_too():
    hints = {name: str(hint) for name, hint in JobOptions.__annotations__.items()}
    assert {name for name, hint in hints.items() if is_number_of_seconds(name, hint)} == set()
    job = NewJob(1, delay=timedelta(1), timeout=timedelta(1), expires=timedelta(1), unique=Unique("k", timedelta(1)))
    assert (job.delay_at(0), Backoff("fixed", timedelta(minutes=1), cap=timedelta(hours=1))) == (
        86400.0,
        Backoff.fixed(60, cap=3600),
    )
