"""A WSGI application with a queue that is opened when the module is imported, before the server forks."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from jobwire.sync import Queue

queue = Queue("letters", os.environ["APP_URL"]).open()
first = queue.add("before the fork")


def application(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    job = queue.add(environ["PATH_INFO"])
    assert queue.get(first.id) is not None
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [f"{os.getpid()} {job.id}".encode()]
