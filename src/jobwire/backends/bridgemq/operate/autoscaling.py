"""The keys in which an autoscaler counts the jobs of a type.

The waiting list of BridgeMQ holds the jobs of all types, so jobwire's own indexes of one type are counted. Jobs of
other clients are in them once a worker has read the list. Delayed jobs and cron jobs become ready only through a
worker. So if there may be no worker, one is kept as long as there is any of these, in the list even of another type.

The paused types are the members of one set. KEDA can count them but not look for one.
"""

from __future__ import annotations

from jobwire.backends.autoscaling import Scaling
from jobwire.backends.bridgemq.keys import DEFAULT_NAMESPACE, Keys, check_name
from jobwire.backends.redisio.autoscaling import key_scaling
from jobwire.urls import Address


def scaling(address: Address, queue: str, *, from_zero: bool) -> Scaling:
    check_name("queue", queue)
    keys = Keys(address.options.get("namespace", DEFAULT_NAMESPACE))
    later = {"delayed": keys.delayed_of(queue), "listed": keys.waiting, "cron": keys.cron} if from_zero else {}
    counted = {"waiting": keys.indexed(queue), "active": keys.claims(queue)}
    return key_scaling(address, counted, later, counted_when_paused="all")
