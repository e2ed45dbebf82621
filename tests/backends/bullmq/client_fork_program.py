"""A program that forks beside a connection made from a client: python client_fork_program.py PROTOCOL URL PREFIX."""

from __future__ import annotations

import os
import sys

import redis

from jobwire import sync

protocol, url, prefix = sys.argv[1:]
option = {"bullmq": "prefix", "bridgemq": "namespace"}[protocol]
with redis.Redis.from_url(url) as client:
    number = client.client_id()
    with sync.connect(f"{protocol}:?{option}={prefix}", client=client) as connection:
        queue = sync.Queue("mail", connection).open()
        queue.add(1)
        pid = os.fork()
        if not pid:
            queue.add(2)
            os._exit(0)
        _, status = os.waitpid(pid, 0)
        assert status == 0, status
        queue.add(3)
        assert [job.data for job in queue.jobs()] == [1, 2, 3]
        queue.close()
    assert client.client_id() == number
print("done")
