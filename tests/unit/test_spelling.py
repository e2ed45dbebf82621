"""Options that don't exist are refused where they are given, with what was probably meant."""

from __future__ import annotations

import doctest
from datetime import timedelta

import pytest

from jobwire import Flow, FlowJob, InvalidOption, NewJob, Queue, Rate, Worker, counted, native, remedies, spelling
from jobwire.native import BridgeMQWorker, BullMQWorker, MonqueInstance, MonqueWorker, PgBossWorker


async def _handle(job):
    return None


def refusal_of(make, *args, **options):
    with pytest.raises(InvalidOption) as refusal:
        make(*args, **options)
    return refusal.value


@pytest.mark.parametrize("module", [spelling, counted, remedies], ids=lambda module: module.__name__)
def test_the_examples_in_the_docstrings_hold(module):
    results = doctest.testmod(module)
    assert (results.failed, results.attempted > 0) == (0, True), results


@pytest.mark.parametrize(
    ("option", "meant"),
    [
        ("attempt", "attempts"),
        ("Attempts", "attempts"),
        ("jobId", "id"),
        ("job_id", "id"),
        ("removeOnComplete", "keep_completed"),
        ("removeOnFail", "keep_failed"),
        ("keepCompleted", "keep_completed"),
        ("retryLimit", "attempts, which counts the first run too"),
        ("startAfter", "delay (in seconds) or run_at"),
        ("delay_ms", "delay, in seconds"),
        ("singletonKey", "unique=Unique(key)"),
        ("repeat", "queue.schedule()"),
        ("priorty", "priority"),
        ("connection", "transaction=…, which queue.add and queue.add_many take"),
    ],
)
def test_an_option_that_no_job_has_is_refused_with_ours(option, meant):
    refused = refusal_of(NewJob, 1, **{option: 3})
    assert (refused.field, refused.value) == (option, 3)
    assert f"did you mean {meant}?" in refused.rule
    assert f"did you mean {meant}?" in refusal_of(FlowJob, "reports", 1, **{option: 3}).rule


def test_an_option_like_no_other_is_refused_with_all_that_there_are():
    assert "known are id, priority, delay" in refusal_of(NewJob, 1, colour="red").rule


def test_a_part_of_a_flow_is_told_its_own_options_too():
    assert "did you mean on_failure?" in refusal_of(FlowJob, "reports", onFailure="fail").rule
    assert "did you mean children?" in refusal_of(FlowJob, "reports", childs=[]).rule


@pytest.mark.parametrize(
    ("option", "meant"),
    [
        ("concurency", "concurrency"),
        ("maxStalled", "max_stalled"),
        ("lockDuration", "lease"),
        ("limiter", "rate=Rate(jobs, per=seconds)"),
        ("stack", "native=BridgeMQWorker(stack=…)"),
        ("metrics", "native=BullMQWorker(metrics=…)"),
        ("poll", "native=PgBossWorker(poll=…)"),
    ],
)
def test_an_option_that_no_worker_has_is_refused_with_ours(option, meant):
    refused = refusal_of(Worker, "work", _handle, "memory:", **{option: 3})
    assert refused.field == option
    assert f"did you mean {meant}?" in refused.rule


def test_a_queue_and_a_flow_refuse_other_options_too():
    assert "did you mean size_limit?" in refusal_of(Queue, "work", "memory:", sizeLimit=3).rule
    assert "did you mean size_limit?" in refusal_of(Flow, "memory:", sizelimit=3).rule


@pytest.mark.parametrize(
    ("kind", "options", "field"),
    [
        (BullMQWorker, {"metric": 5}, "metric"),
        (BullMQWorker, {"metrics": 0}, "metrics"),
        (BridgeMQWorker, {"capabilities": "gpu"}, "capabilities"),
        (BridgeMQWorker, {"capabilities": [""]}, "capabilities"),
        (BridgeMQWorker, {"region": 7}, "region"),
        (MonqueWorker, {"max_retries": "3"}, "max_retries"),
        (MonqueWorker, {"lock_timeout": "soon"}, "lock_timeout"),
        (MonqueWorker, {"instance": "mailer"}, "instance"),
        (PgBossWorker, {"key_rate": (10, 1)}, "key_rate"),
        (PgBossWorker, {"group_concurrency": {"default": 1, "tiers": 5}}, "group_concurrency"),
    ],
    ids=str,
)
def test_native_options_check_themselves(kind, options, field):
    assert refusal_of(kind, **options).field == field


def test_native_options_take_durations_of_both_kinds_and_need_no_driver():
    assert MonqueWorker(lock_timeout=timedelta(minutes=5), instance=MonqueInstance("a"))
    assert PgBossWorker(poll=timedelta(seconds=1), key_rate=Rate(1, per=timedelta(seconds=1)))
    assert set(native.__all__) >= {"BullMQWorker", "BridgeMQWorker", "MonqueWorker", "PgBossWorker"}


@pytest.mark.parametrize(("typo", "meant"), [("default", "defaults"), ("wait_for_stor", "wait_for_store")])
def test_every_option_of_a_queue_is_suggested(typo, meant):
    assert f"did you mean {meant}?" in refusal_of(Queue, "emails", "memory:", **{typo: 1}).rule
