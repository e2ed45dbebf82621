"""The metrics: their names, labels and help texts, and their values from workers and stores.

The names are BullMQ's with the protocol as prefix, except for the two about the connection, which name the store.
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
"""States that have another name in the metrics."""
_QUEUE_COUNTERS = (
    ("stalled_jobs", "recovered", "Jobs that this process recovered from workers that died."),
    ("heartbeat_success", "heartbeats", "Renewals of the leases of running jobs that succeeded."),
    ("heartbeat_failure", "heartbeat_failures", "Renewals of the leases of running jobs that failed."),
    ("stalled_checker_skipped", "duties_skipped", "Checks left out because the one before was still running."),
)


COUNTED = ("completed", "failed", "retried", "reconnects", *(field for _, field, _ in _QUEUE_COUNTERS))
"""The numbers of a worker's Stats that become metrics."""


def of_jobs(protocol: str, stats: Mapping[str, Stats], durations: Mapping[str, Durations]) -> Iterator[Metric]:
    """Yields the metrics of finished work, per queue."""
    processed = CounterMetricFamily(
        f"{protocol}_jobs_processed", "Runs that ended, by the verdict on the job.", labels=("queue", "status")
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
    """Yields a metric of each worker's activity, by queue and id."""
    family = GaugeMetricFamily(
        f"{protocol}_active_workers", "1 while the worker claims or runs jobs.", labels=("queue", "worker_id")
    )
    for labels, working in active.items():
        family.add_metric(labels, float(working))
    yield family


def of_stores(protocol: str, lengths: Mapping[str, Sequence[Counts]], connected: Sequence[bool]) -> Iterator[Metric]:
    """Yields the metrics that come from the stores. A queue whose length is not known has no sample: an old number
    would look like a new one."""
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
