"""The worker engine: claims, group commit, lease keeper, runners of handlers, shutdown."""

from jobwire.worker.active import ActiveJob, BlockingJob
from jobwire.worker.queue_handler import QueueHandler
from jobwire.worker.stats import Observer, Stats
from jobwire.worker.worker import Worker

__all__ = ["ActiveJob", "BlockingJob", "Observer", "QueueHandler", "Stats", "Worker"]
