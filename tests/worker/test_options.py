"""What a Worker is given is checked when the object is made, not when the first job fails."""

from __future__ import annotations

import functools

import pytest

from jobwire import InvalidOption, QueueHandler, Worker
from worker import handlers


async def _handle(job):
    return None


class Service:
    def handle(self, job):
        return None

    def two(self, job, more):
        return None

    async def __call__(self, job):
        return None


class Generating:
    async def __call__(self, job):
        yield 1


def _none():
    return None


def _generator(job):
    yield job


async def _async_generator(job):
    yield job


def refusal_of(handler=_handle, **options):
    with pytest.raises(InvalidOption) as refusal:
        Worker("work", handler, "memory:", **options)
    return refusal.value


@pytest.mark.parametrize(
    ("handler", "words"),
    [
        (None, "must be a function"),
        ("module:function", "must be a function"),
        (_none, "must take one argument"),
        (Service().two, "must take one argument"),
        (lambda job, *, more: None, "must take one argument"),
        (Service, "is a class"),
        (_generator, "has a yield in it"),
        (_async_generator, "has a yield in it"),
        (Generating(), "has a yield in it"),
    ],
)
@pytest.mark.parametrize("executor", [None, "process"])
def test_a_handler_that_can_not_work_is_refused(handler, words, executor):
    refused = refusal_of(handler, executor=executor)
    assert refused.field == "handler"
    assert words in refused.rule


@pytest.mark.parametrize(
    "handler",
    [
        _handle,
        print,
        Service(),
        Service().handle,
        functools.partial(Service().two, more=1),
        lambda *jobs: None,
        lambda job, more=1: None,
    ],
    ids=["coroutine", "builtin", "object", "method", "partial", "star", "default"],
)
def test_a_handler_that_takes_a_job_is_not(handler):
    Worker("work", handler, "memory:")


def test_a_handler_that_no_child_can_be_given_is_refused():
    secret = 5
    refused = refusal_of(lambda job: secret, executor="process")
    assert refused.field == "handler"
    assert "top of a module" in refused.rule
    Worker("work", handlers.report, "memory:", executor="process")


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"backoff": 3}, "backoff"),
        ({"backoff": "exponential"}, "backoff"),
        ({"backoff": lambda failures: 1}, "backoff"),
        ({"backoff": {"mine": 3}}, "backoff.mine"),
        ({"backoff": {"mine": lambda: 1}}, "backoff.mine"),
        ({"observers": 5}, "observers"),
        ({"observers": "metrics"}, "observers"),
        ({"observers": [object()]}, "observers[0]"),
        ({"rate": 5}, "rate"),
        ({"rate": (1, 60)}, "rate"),
        ({"rate": (1, "minute")}, "rate"),
        ({"keep_completed": "all"}, "keep_completed"),
        ({"lease": "long"}, "lease"),
        ({"timeout": 0}, "timeout"),
        ({"native": {"stack": "py"}}, "native"),
    ],
    ids=lambda given: given if isinstance(given, str) else "",
)
def test_an_option_that_makes_no_sense_is_refused(options, field):
    assert refusal_of(**options).field == field


def test_a_strategy_that_must_be_awaited_is_refused():
    async def strategy(failures, job, error):
        return 1.0

    assert "not a coroutine function" in refusal_of(backoff=strategy).rule


def test_an_observer_that_is_none_is_refused_later_too():
    worker = Worker("work", _handle, "memory:")
    with pytest.raises(InvalidOption, match="started"):
        worker.observe(print)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Worker({}, url="memory:"), "at least one queue"),
        (lambda: Worker({"emails": _handle}, "memory:"), "given as url="),
        (lambda: Worker({"emails": _none}, url="memory:"), "emails.handler: must take one argument"),
        (lambda: Worker({"emails": QueueHandler(_handle, timeout=-1)}, url="memory:"), "emails.timeout: "),
        (lambda: Worker({"emails": QueueHandler(_handle, concurrency=0)}, url="memory:"), "emails.concurrency: "),
        (lambda: Worker({"emails": QueueHandler(_handle, rate=(1, 2))}, url="memory:"), "emails.rate: must be a Rate"),
        (lambda: Worker({"emails": QueueHandler(_handle, executor="thread")}, url="memory:"), "emails.executor: "),
        (lambda: Worker({"": _handle}, url="memory:"), "queue: "),
        (lambda: Worker({"emails": _handle}, url="memory:", timeout=-1), "^timeout: "),
        (lambda: Worker({"emails": _handle}, url="memory:", lifespan=7), "lifespan: must be a function"),
        (lambda: QueueHandler(_handle, concurency=3), "did you mean concurrency"),
        (lambda: Worker("emails", url="memory:"), "handler: must be a function"),
    ],
)
def test_queues_and_handlers_that_can_not_work_are_refused(make, words):
    with pytest.raises(InvalidOption, match=words):
        make()


def test_a_queue_has_its_own_options_and_otherwise_the_workers():
    own = QueueHandler(_handle, concurrency=50, timeout=5, keep_completed=3)
    worker = Worker({"emails": own, "letters": _handle}, url="memory:", concurrency=10, timeout=60, keep_failed=7)
    emails, letters = worker._plans.values()
    assert (emails.concurrency, letters.concurrency) == (10, 10)
    assert (emails.settings.timeout, letters.settings.timeout) == (5.0, 60.0)
    assert (emails.settings.keep_completed.count, letters.settings.keep_completed) == (3, None)
    assert {plan.settings.keep_failed.count for plan in (emails, letters)} == {7}
    assert {plan.settings.worker_id for plan in (emails, letters)} == {worker.id}
    with pytest.raises(AttributeError, match="see `queues`"):
        _ = worker.queue
