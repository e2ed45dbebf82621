"""The tasks of an app, by queue and name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from jobwire import spelling
from jobwire.boundary import Capabilities, Feature
from jobwire.checks import items, text, whole
from jobwire.errors import InvalidOption
from jobwire.model import Job
from jobwire.rate import Rate
from jobwire.tasks.failures import Hook
from jobwire.tasks.task import Task
from jobwire.worker.handlers import Handler
from jobwire.worker.settings import check_handler


@dataclass(slots=True)
class QueueTasks:
    """The tasks of one queue, and the plain handler of its other jobs."""

    name: str
    by_name: bool
    tasks: dict[str, Task[..., Any]] = field(default_factory=dict[str, Task[..., Any]])
    hooks: dict[str, list[Hook]] = field(default_factory=dict[str, list[Hook]])
    handler: Handler | None = None


class Registry:
    """The tasks of an app. On a protocol without job names, each queue has one task."""

    def __init__(self, can: Capabilities) -> None:
        self._can = can
        self._queues: dict[str, QueueTasks] = {}

    def tasks(self) -> dict[str, Task[..., Any]]:
        """Returns all tasks by their names, or by "queue.name" where two queues have one of the same name."""
        found: dict[str, Task[..., Any]] = {}
        for queue in self._queues.values():
            for name, task in queue.tasks.items():
                found[f"{queue.name}.{name}" if name in found else name] = task
        return found

    def queue(self, name: str) -> QueueTasks:
        if name not in self._queues:
            self._queues[name] = QueueTasks(name, self._can.has(Feature.JOB_NAMES))
        return self._queues[name]

    def find(self, name: str) -> QueueTasks | None:
        """Returns the tasks of a queue, or None if there is neither a task nor a handler for it."""
        return self._queues.get(name)

    def add(self, task: Task[..., Any], hooks: list[Hook]) -> None:
        """Adds a task. Refuses a second one of the same name, and limits that would hold for others too."""
        queue = self.queue(task.queue)
        if task.name in queue.tasks:
            raise InvalidOption("name", task.name, f"is the name of another task of queue {task.queue!r}")
        if queue.tasks and not queue.by_name:
            other = next(iter(queue.tasks))
            raise InvalidOption(
                "queue",
                task.queue,
                f"has task {other!r} already, and {self._can.protocol} has no job names beside the queue's: each task "
                "needs a queue of its own",
            )
        for one in (task, *queue.tasks.values()):
            limit = "rate" if one.settings.rate else "max_running" if one.settings.max_running else None
            if limit is not None and queue.tasks:
                rule = f"holds for a whole queue, and {task.queue!r} has several tasks: give {one.name!r} its own queue"
                raise InvalidOption(limit, getattr(one.settings, limit), rule)
        queue.tasks[task.name] = task
        if hooks:
            queue.hooks[task.name] = hooks

    def add_handler(self, queue: str, handler: Handler) -> None:
        """Adds the plain handler of a queue."""
        check_handler(handler)
        tasks = self.queue(queue)
        if tasks.handler is not None:
            raise InvalidOption("queue", queue, "has a handler already")
        if tasks.tasks and not tasks.by_name:
            raise InvalidOption("queue", queue, f"has task {next(iter(tasks.tasks))!r}, which takes all of its jobs")
        tasks.handler = handler

    def add_hook(self, task: Task[..., Any], hook: Hook) -> None:
        self._queues[task.queue].hooks.setdefault(task.name, []).append(hook)

    def hooks(self, job: Job[Any]) -> list[Hook]:
        """Returns the hooks of the task that the job is for."""
        queue = self._queues.get(job.queue)
        if queue is None:
            return []
        if queue.by_name:
            return queue.hooks.get(job.name, [])
        return [hook for hooks in queue.hooks.values() for hook in hooks]

    def chosen(self, wanted: Iterable[str] | Mapping[str, int] | None) -> dict[str, int | None]:
        """Returns the queues to work on, each with its own concurrency, if it has one."""
        if isinstance(wanted, str):
            raise InvalidOption("queues", wanted, "must be a list of names, or a dict of numbers by name")
        if wanted is None:
            found: dict[str, int | None] = dict.fromkeys(self._queues)
        elif isinstance(wanted, Mapping):
            numbers = cast("Mapping[str, int]", wanted)
            found = {name: whole(f"queues.{name}", most, minimum=1) for name, most in numbers.items()}
        else:
            found = dict.fromkeys(text("queues", name) for name in items("queues", wanted, "names"))
        for name in found:
            if name not in self._queues:
                near = spelling.closest(name, self._queues)
                raise spelling.unknown("queues", name, self._queues, "this app", near, word="queue")
        if not found:
            raise InvalidOption("queues", list(found), "has nothing to work on: the app has no tasks")
        return found

    def rate(self, queue: str) -> Rate | None:
        """Returns the rate of a queue's one task, if it has one for all jobs together."""
        tasks = self._queues[queue].tasks.values()
        return next((task.settings.rate for task in tasks if task.settings.limit_by is None), None)

    def limited_by_key(self, queue: str) -> Task[..., Any] | None:
        """Returns the queue's task whose limits hold for each value of a parameter, if there is one."""
        return next((task for task in self._queues[queue].tasks.values() if task.settings.limit_by is not None), None)

    def limits(self, queues: Iterable[str]) -> dict[str, int]:
        """Returns how many jobs may run at a time, over all workers, for the queues with such a limit."""
        return {
            name: task.settings.max_running
            for name in queues
            for task in self._queues[name].tasks.values()
            if task.settings.max_running is not None and task.settings.limit_by is None
        }
