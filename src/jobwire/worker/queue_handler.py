"""The handlers of a worker's queues, and the options that a queue may have of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

from jobwire.boundary import ConsumerSettings, Strategy
from jobwire.checks import Seconds, seconds, text, whole
from jobwire.errors import InvalidOption
from jobwire.native import NATIVE
from jobwire.options import Keep, keep_of
from jobwire.rate import Rate, rate_of
from jobwire.spelling import refuses_typos
from jobwire.worker.handlers import Executor, Handler, MakesRunner, Runner, make_runner
from jobwire.worker.settings import strategies_of, strategy_of


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueOptions:
    """The options that a worker has for all its queues, and that a queue may have for itself."""

    concurrency: int | None = None
    executor: Executor | None = None
    timeout: Seconds | None = None
    rate: Rate | None = None
    backoff: Strategy | Mapping[str, Strategy] | None = None
    keep_completed: int | Keep | None = None
    keep_failed: int | Keep | None = None
    native: object | None = None


@refuses_typos("a QueueHandler", NATIVE)
@dataclass(frozen=True, slots=True)
class QueueHandler(QueueOptions):
    """The handler of one queue of a Worker, with options of the queue's own. An option that is None is the worker's.

        Worker({"emails": send, "reports": QueueHandler(render, concurrency=2, timeout=60)}, concurrency=20)

    `concurrency` limits how many jobs of this queue run at once. The worker's limit for all its queues applies too.
    """

    handler: Handler | MakesRunner


QueueHandlers = Mapping[str, Handler | MakesRunner | QueueHandler]
"""The queues of one worker, each with its handler."""


@dataclass(frozen=True, slots=True)
class QueuePlan:
    """One queue of a worker, with its options checked."""

    settings: ConsumerSettings
    concurrency: int
    make_runner: Callable[[], Runner]


def plans_of(
    queue: str | QueueHandlers,
    handler: Handler | MakesRunner | QueueHandler | None,
    worker: QueueOptions,
    common: ConsumerSettings,
) -> dict[str, QueuePlan]:
    """Returns the plan of each queue that a Worker was given. `worker` has the options of all its queues, `common` the
    settings that a queue can't change. In a worker of several queues, an error names the queue."""
    if not isinstance(queue, Mapping):
        own = handler if isinstance(handler, QueueHandler) else QueueHandler(cast("Handler", handler))
        return {text("queue", queue): _plan(queue, own, worker, common)}
    if handler is not None:
        raise InvalidOption("handler", handler, "can't be given with a mapping of queues; a URL is given as url=…")
    if not queue:
        raise InvalidOption("queue", queue, "must have at least one queue")
    _settings(worker)  # so that the worker's own options are refused by their own names
    plans: dict[str, QueuePlan] = {}
    for name, given in queue.items():
        own = given if isinstance(given, QueueHandler) else QueueHandler(given)
        try:
            plans[text("queue", name)] = _plan(name, own, worker, common)
        except InvalidOption as error:
            raise InvalidOption(f"{name}.{error.field}", error.value, error.rule) from None
    return plans


def _plan(queue: str, own: QueueHandler, worker: QueueOptions, common: ConsumerSettings) -> QueuePlan:
    limits = [whole("concurrency", one, minimum=1) for one in (worker.concurrency, own.concurrency) if one is not None]
    settings = replace(common, queue=queue, **{**_settings(worker), **_settings(own)})
    made = QueuePlan(settings, min(limits), _runner_maker(queue, own, worker.executor))
    made.make_runner().close()  # refuses an object that can't be a handler
    return made


def _settings(options: QueueOptions) -> dict[str, Any]:
    """Returns the consumer's settings that these options change."""
    changes: dict[str, Any] = {}
    if options.timeout is not None:
        changes["timeout"] = seconds("timeout", options.timeout, minimum=0.001)
    if options.rate is not None:
        changes["rate"] = rate_of("rate", options.rate)
    if options.backoff is not None:
        changes["strategy"] = strategy_of(options.backoff)
        changes["strategies"] = strategies_of(options.backoff)
    if options.keep_completed is not None:
        changes["keep_completed"] = keep_of(options.keep_completed, "keep_completed")
    if options.keep_failed is not None:
        changes["keep_failed"] = keep_of(options.keep_failed, "keep_failed")
    if options.native is not None:
        changes["native"] = options.native
    return changes


def _runner_maker(queue: str, own: QueueHandler, executor: Executor | None) -> Callable[[], Runner]:
    handler = own.handler
    if isinstance(handler, MakesRunner) and not isinstance(handler, type):
        if own.executor is not None:
            raise InvalidOption("executor", own.executor, "can't be given: the handler makes its own runner")
        return partial(handler.make_runner, queue)
    return partial(make_runner, handler, own.executor or executor, f"jobwire-{queue}")
