"""The results of earlier jobs as arguments of a later one.

A job that waits for others has a key "$results" in its data. It names, for each parameter that gets a result, the job
that has it, or a list of jobs:

    {"express": true, "$results": {"receipt": {"queue": "charge", "id": "6f1c…"}}}

The worker puts the results in place of the names before it reads the arguments.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from jobwire.boundary import RESULTS_KEY
from jobwire.model import JobKey
from jobwire.tasks.current import CONTEXT_KEY
from jobwire.tasks.parameters import InvalidArguments, Parameters
from jobwire.worker.active import ActiveJob

Source = JobKey | Sequence[JobKey]
"""The job whose result is an argument, or several jobs for a list of results."""


def with_sources(data: Any, sources: Mapping[str, Source]) -> dict[str, Any]:
    """Returns the data of a job that waits: its own arguments, and the jobs that have the others."""
    named = {
        name: source._asdict() if isinstance(source, JobKey) else [key._asdict() for key in source]
        for name, source in sources.items()
    }
    return {**cast("dict[str, Any]", data or {}), RESULTS_KEY: named}


def awaits_results(data: Any) -> bool:
    """Returns True for the data of a job that has waited for others."""
    return isinstance(data, dict) and RESULTS_KEY in data


async def fill(job: ActiveJob[Any], parameters: Parameters) -> None:
    """Puts the results that the job has waited for among its arguments. Raises InvalidArguments if one is missing."""
    data: dict[str, Any] = dict(job.data)
    sources = _sources(parameters.task, data.pop(RESULTS_KEY))
    values = await job.awaited_results() if any(sources.values()) else {}
    for name, source in sources.items():
        if isinstance(source, JobKey):
            data[name] = _result(parameters.task, name, source, values)
        else:
            data[name] = [_result(parameters.task, name, key, values) for key in source]
    if parameters.single is not None and parameters.single in sources:
        data = _whole(data, parameters.single)
    job.fill_data(data)


def _whole(data: dict[str, Any], name: str) -> Any:
    """Returns the data of a task that takes one object: the result itself, with the context that was sent along."""
    value = data[name]
    if CONTEXT_KEY in data and isinstance(value, dict):
        return {**cast("dict[str, Any]", value), CONTEXT_KEY: data[CONTEXT_KEY]}
    return value


def _sources(task: str, stored: Any) -> dict[str, Source]:
    try:
        return {
            str(name): [_key(one) for one in cast("list[Any]", source)] if isinstance(source, list) else _key(source)
            for name, source in dict(stored).items()
        }
    except (TypeError, KeyError, ValueError):
        raise InvalidArguments(
            f'task {task}: data.{RESULTS_KEY}: must be an object of {{"queue": …, "id": …}} or lists of these'
        ) from None


def _key(stored: Any) -> JobKey:
    return JobKey(str(stored["queue"]), str(stored["id"]))


def _result(task: str, name: str, key: JobKey, values: Mapping[JobKey, Any]) -> Any:
    if key not in values:
        raise InvalidArguments(
            f"task {task}: data.{name}: the result of job {key.id} of queue {key.queue!r} is not in the store"
        )
    return values[key]
