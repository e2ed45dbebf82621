"""The metrics themselves: their names, labels and texts, made from what workers and stores report.

The names are the BullMQ ones with the protocol as prefix; only the two on the connection name its store.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from jobwire.model import State
from jobwire.observe.durations import Durations
from jobwire.observe.stores import Counts
from jobwire.protocols import PROTOCOLS
from jobwire.worker import Stats

_STATE_WORDS = {State.WAITING: "wait"}
"""Where the metric's word for a state is not ours."""
_QUEUE_COUNTERS = (
    ("stalled_jobs", "recovered", "Jobs that this process took back from workers that died."),
    ("heartbeat_success", "heartbeats", "Renewals of the leases of running jobs that succeeded."),
    ("heartbeat_failure", "heartbeat_failures", "Renewals of the leases of running jobs that failed."),
    ("stalled_checker_skipped", "duties_skipped", "Checks left out because the one before was still running."),
)


COUNTED = ("completed", "failed", "retried", "reconnects", *(field for _, field, _ in _QUEUE_COUNTERS))
"""The numbers of a worker's Stats that are shown."""


def of_jobs(protocol: str, stats: Mapping[str, Stats], durations: Mapping[str, Durations]) -> Iterator[Metric]:
    """What the workers of each queue have done."""
    processed = CounterMetricFamily(
        f"{protocol}_jobs_processed", "Runs that ended, by what became of the job.", labels=("queue", "status")
    )
    times = HistogramMetricFamily(f"{protocol}_job_duration_seconds", "How long handlers ran.", labels=("queue",))
    for queue, done in stats.items():
        processed.add_metric((queue, "completed"), done.completed)
        processed.add_metric((queue, "failed"), done.failed)
        processed.add_metric((queue, "retried"), done.retried)
        buckets, total = durations[queue].read()
        times.add_metric((queue,), buckets, total)
    yield processed
    yield times
    for name, field, words in _QUEUE_COUNTERS:
        family = CounterMetricFamily(f"{protocol}_{name}", words, labels=("queue",))
        for queue, done in stats.items():
            family.add_metric((queue,), getattr(done, field))
        yield family
    attempts = CounterMetricFamily(
        f"{protocol}_{PROTOCOLS[protocol].store}_reconnect_attempts",
        "Attempts of workers to reach the store again after a call failed.",
    )
    attempts.add_metric((), sum(done.reconnects for done in stats.values()))
    yield attempts


def of_workers(protocol: str, active: Mapping[tuple[str, str], bool]) -> Iterator[Metric]:
    """Which workers are at work, by queue and id."""
    family = GaugeMetricFamily(
        f"{protocol}_active_workers", "1 while the worker claims or runs jobs.", labels=("queue", "worker_id")
    )
    for labels, working in active.items():
        family.add_metric(labels, float(working))
    yield family


def of_stores(protocol: str, lengths: Mapping[str, Sequence[Counts]], connected: Sequence[bool]) -> Iterator[Metric]:
    """What the stores said. A queue whose length is not known has no sample: an old number would pass for a new one."""
    family = GaugeMetricFamily(f"{protocol}_queue_length", "Jobs by state.", labels=("queue", "state"))
    for queue, counts in lengths.items():
        for state in State:
            told = [count[state] for count in counts if state in count]
            if told:
                family.add_metric((queue, _STATE_WORDS.get(state, state.value)), sum(told))
    yield family
    status = GaugeMetricFamily(
        f"{protocol}_{PROTOCOLS[protocol].store}_connection_status",
        "How many stores answered this scrape, and how many did not.",
        labels=("status",),
    )
    status.add_metric(("connected",), sum(connected))
    status.add_metric(("disconnected",), len(connected) - sum(connected))
    yield status
