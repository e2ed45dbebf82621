"""Metrics for Prometheus.

    metrics = Metrics()
    worker = metrics.add(Worker("emails", handle, url, observers=[metrics]))
    metrics.serve(9464)

A worker's counters are read at each scrape. Only run times are recorded job by job, which needs `observers=[metrics]`.
Labels are queues, states and workers of this process, never jobs, so the number of series is bounded.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Self
from wsgiref.simple_server import WSGIServer

from jobwire.boundary import Claim, Outcome, Verdict
from jobwire.checks import Seconds, seconds
from jobwire.connection import Connection
from jobwire.errors import InvalidOption, MissingExtra
from jobwire.observe.durations import BUCKETS, Durations, bounds_of
from jobwire.observe.stores import Reading, Stores
from jobwire.queue import Queue
from jobwire.worker import Stats, Worker

try:
    import prometheus_client
    from prometheus_client.core import Metric
except ModuleNotFoundError as missing:
    raise MissingExtra("jobwire.observe.metrics", "observe") from missing

from jobwire.observe import families

logger = logging.getLogger("jobwire.observe")

_ENDED = (Verdict.COMPLETED, Verdict.FAILED, Verdict.RETRIED)


class Metrics:
    """The metrics of workers and queues of this process. It is an observer of workers and a collector of a registry.

    `registry` defaults to Prometheus' global one. `timeout` limits how long a scrape waits for the stores. Close the
    object, or use it in a `with` block: it may hold a port, a thread and a connection to each store.
    """

    def __init__(
        self,
        registry: prometheus_client.CollectorRegistry | None = None,
        *,
        buckets: Sequence[float] = BUCKETS,
        timeout: Seconds = 2.0,
        fresh_for: Seconds = 1.0,
    ) -> None:
        self.registry = prometheus_client.REGISTRY if registry is None else registry
        self._bounds = bounds_of(buckets)
        self._stores = Stores(seconds("timeout", timeout, minimum=0.01), seconds("fresh_for", fresh_for))
        self._lock = threading.Lock()
        self._workers: list[Worker] = []
        self._queues: list[tuple[Connection, str]] = []
        self._past: dict[tuple[str, str], Stats] = {}
        # By queue alone: an observer gets the queue of a job, not the protocol.
        self._durations: dict[str, Durations] = {}
        self._complained: set[str] = set()
        self._servers: list[tuple[WSGIServer, threading.Thread]] = []
        self.registry.register(self)

    # --- what is watched --------------------------------------------------------------------------------------------

    def add(self, worker: Worker) -> Worker:
        """Adds a worker and the length of its queue to the metrics, and returns the worker. For its run times, also
        make it with `observers=[metrics]`."""
        protocol = _protocol(worker.connection)
        with self._lock:
            for other in self._workers:
                same = [queue for queue in worker.queues if queue in other.queues]
                if same and _protocol(other.connection) != protocol:
                    rule = f"needs a Metrics of its own: this one shows queue {same[0]!r} of {other!r}"
                    raise InvalidOption("worker", worker, rule)
            if worker not in self._workers:
                self._workers.append(worker)
        return worker

    def remove(self, worker: Worker) -> None:
        """Removes a stopped worker from the metrics. Its counts stay in those of its queue: a counter must not go
        down."""
        with self._lock:
            if worker in self._workers:
                self._workers.remove(worker)
                for queue in worker.queues:
                    key = (_protocol(worker.connection), queue)
                    _add(self._past.setdefault(key, Stats()), worker.stats_of(queue))

    def add_queue(self, queue: Queue) -> Queue:
        """Adds the length of a queue that has no added worker, and returns the queue."""
        with self._lock:
            self._queues.append((queue.connection, queue.name))
        return queue

    # --- a worker's observer ----------------------------------------------------------------------------------------

    def started(self, claim: Claim) -> None:
        if claim.job.queue not in self._durations:
            self._durations.setdefault(claim.job.queue, Durations(self._bounds))

    def settled(self, outcome: Outcome, verdict: Verdict) -> None:
        if verdict in _ENDED:
            self._durations[outcome.claim.job.queue].note(outcome.claim.run_seconds)

    # --- a registry's collector -------------------------------------------------------------------------------------

    def describe(self) -> Iterable[Metric]:
        """Returns nothing: the names depend on the protocols of workers that are added later."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """Yields the present metrics. A scrape calls it in any thread. It asks the stores, so it may block for up to
        `timeout`."""
        with self._lock:
            workers, queues = list(self._workers), list(self._queues)
            past = {key: replace(done) for key, done in self._past.items()}
        self._complain_of_forgotten(workers)
        watched = [*queues, *((worker.connection, queue) for worker in workers for queue in worker.queues)]
        readings = self._stores.read(_distinct(watched))
        protocols = {_protocol(connection) for connection, _ in watched} | {protocol for protocol, _ in past}
        for protocol in sorted(protocols):
            crew = [worker for worker in workers if _protocol(worker.connection) == protocol]
            yield from self._of_crew(protocol, crew, past)
            yield from _of_stores(protocol, [one for one in readings if _protocol(one.connection) == protocol])

    def _of_crew(self, protocol: str, crew: list[Worker], past: dict[tuple[str, str], Stats]) -> Iterator[Metric]:
        stats = {queue: done for (of, queue), done in past.items() if of == protocol}
        for worker in crew:
            for queue in worker.queues:
                _add(stats.setdefault(queue, Stats()), worker.stats_of(queue))
        if stats:
            durations = {queue: self._durations.get(queue) or Durations(self._bounds) for queue in stats}
            yield from families.of_jobs(protocol, stats, durations)
            active = {
                (queue, worker.id): _active(worker) for worker in sorted(crew, key=_active) for queue in worker.queues
            }
            yield from families.of_workers(protocol, active)

    def _complain_of_forgotten(self, workers: list[Worker]) -> None:
        """Warns of a worker that was only added, or only has this observer: some of its numbers would stay at 0."""
        known = {queue for worker in workers for queue in worker.queues} | {queue for _, queue in self._past}
        for queue in list(self._durations):
            if queue not in known:
                self._complain(
                    f"a worker of queue {queue!r} has these metrics as observer: metrics.add(worker) is missing"
                )
        for worker in workers:
            done = [queue for queue in worker.queues if _has_ended_runs(worker.stats_of(queue))]
            if not self._durations.keys() >= set(done):
                self._complain(f"the run times of {worker!r} are not seen: make it with observers=[metrics]")

    def _complain(self, words: str) -> None:
        if words not in self._complained:
            self._complained.add(words)
            logger.warning("%s", words)

    # --- serving ----------------------------------------------------------------------------------------------------

    def serve(self, port: int = 9464, address: str = "127.0.0.1") -> int:
        """Serves the whole registry at http://address:port/metrics, from a thread, and returns the port (0: a free
        one). There is no access control: any client that reaches an address beyond loopback can read the metrics."""
        server, thread = prometheus_client.start_http_server(port, address, self.registry)
        self._servers.append((server, thread))
        return server.server_port

    def close(self) -> None:
        """Leaves the registry and closes the port and the connections."""
        for server, thread in self._servers:
            server.shutdown()
            server.server_close()
            thread.join()
        self._servers.clear()
        self.registry.unregister(self)
        self._stores.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _of_stores(protocol: str, readings: list[Reading]) -> Iterator[Metric]:
    if not readings:
        return
    lengths: dict[str, list[families.Counts]] = {}
    for reading in readings:
        for queue, counts in reading.lengths.items():
            lengths.setdefault(queue, []).append(counts)
    yield from families.of_stores(protocol, lengths, [reading.connected for reading in readings])


def _distinct(watched: list[tuple[Connection, str]]) -> set[tuple[Connection, str]]:
    """Returns each queue of each store once. A Worker and a Queue of one URL have separate connections to the same
    store."""
    chosen: dict[object, Connection] = {}
    return {(chosen.setdefault(connection.address, connection), queue) for connection, queue in watched}


def _active(worker: Worker) -> bool:
    return worker.stats.calls > 0 and ((worker.claiming and not worker.paused) or worker.busy > 0)


def _has_ended_runs(stats: Stats) -> bool:
    return stats.completed + stats.failed + stats.retried > 0


def _add(total: Stats, more: Stats) -> Stats:
    for name in families.COUNTED:
        setattr(total, name, getattr(total, name) + getattr(more, name))
    return total


def _protocol(connection: Connection) -> str:
    return connection.address.protocol
