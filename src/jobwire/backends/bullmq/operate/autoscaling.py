"""The keys in which an autoscaler counts the jobs of a queue.

Jobs without a priority wait in a list, the others in a sorted set, so one key is not enough. While the queue is paused,
BullMQ keeps the list under another key, which is not counted. The sorted set stays where it is. A delayed job, and the
next job of a job scheduler, become ready only through a worker.
"""

from __future__ import annotations

from jobwire.backends.autoscaling import Scaling
from jobwire.backends.bullmq.keys import DEFAULT_PREFIX, Keys
from jobwire.backends.redisio.autoscaling import key_scaling
from jobwire.urls import Address


def scaling(address: Address, queue: str, *, from_zero: bool) -> Scaling:
    keys = Keys(address.options.get("prefix", DEFAULT_PREFIX), queue)
    counted = {"wait": keys.wait, "prioritized": keys.prioritized, "active": keys.active}
    later = {"delayed": keys.delayed} if from_zero else {}
    return key_scaling(address, counted, later, counted_when_paused="those with a priority")
