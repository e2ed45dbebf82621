"""The server, its scripts and their answers, which all parts of this backend share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jobwire.backends.bullmq.keys import DEFAULT_PREFIX, Keys, hash_tag
from jobwire.backends.redisio.answers import ACTED
from jobwire.backends.redisio.connect import RedisStore
from jobwire.backends.redisio.scripts import Argument, Scripts
from jobwire.boundary import Acted
from jobwire.errors import InvalidOption
from jobwire.urls import Address


class Server:
    """One Redis server or cluster with the queues of one prefix."""

    def __init__(self, address: Address) -> None:
        self.prefix = address.options.get("prefix", DEFAULT_PREFIX)
        self.store = RedisStore(address)
        self.scripts = Scripts(self.store, __package__ or "")
        self._known: dict[str, Keys] = {}

    def keys(self, queue: str) -> Keys:
        """Returns the keys of a queue. Raises InvalidOption for a name that no queue can have."""
        keys = self._known.get(queue)
        if keys is None:
            keys = Keys(self.prefix, queue)
            if self.store.cluster and hash_tag(keys.base) is None:
                rule = "needs braces on a cluster, in its name or in the prefix: ?prefix={bull} keeps it on one server"
                raise InvalidOption("queue", queue, rule)
            self._known[queue] = keys
        return keys

    async def run(self, script: str, queue: str, args: Sequence[Argument] = ()) -> Any:
        """Runs a script on the keys of a queue."""
        return await self.scripts.run(script, [self.keys(queue).base], args)

    async def act(self, script: str, queue: str, args: Sequence[Argument]) -> Acted:
        """Runs a script that changes one job."""
        return ACTED[await self.run(script, queue, args)]

    def check_together(self, queues: Sequence[str]) -> None:
        """Raises InvalidOption if one script can't use all of these queues: on a cluster they must share a slot."""
        if not self.store.cluster:
            return
        tag = hash_tag(self.keys(queues[0]).base)
        for queue in queues:
            if hash_tag(self.keys(queue).base) != tag:
                rule = "must have the same part in braces on a cluster as the queues of its flow"
                raise InvalidOption("queue", queue, rule)
