"""The namespace and its server, which all parts of this backend share."""

from __future__ import annotations

from jobwire.backends.bridgemq.job_type import JobType
from jobwire.backends.bridgemq.keys import DEFAULT_NAMESPACE, Keys, has_hash_tag
from jobwire.backends.redisio.connect import RedisStore
from jobwire.backends.redisio.scripts import Scripts
from jobwire.errors import InvalidOption
from jobwire.urls import Address


class Namespace:
    """One Redis server or cluster with the job types of one namespace."""

    def __init__(self, address: Address) -> None:
        name = address.options.get("namespace", DEFAULT_NAMESPACE)
        if address.transport == "cluster" and not has_hash_tag(name):
            rule = "needs a part in braces on a cluster, such as ?namespace={bridge}, to keep its keys on one server"
            raise InvalidOption("namespace", name, rule)
        self.keys = Keys(name)
        self.store = RedisStore(address)
        self.scripts = Scripts(self.store, "jobwire.backends.bridgemq")

    def type(self, queue: str) -> JobType:
        """Returns the job type of a queue."""
        return JobType(queue, self.keys, self.store, self.scripts)
