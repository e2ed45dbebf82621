"""Handlers that child processes import by name."""

from __future__ import annotations

import os
import signal
import sys
import time
from typing import Any

from jobwire import Snooze, Unrecoverable


def double(job: Any) -> int:
    return job.data * 2


async def double_async(job: Any) -> int:
    return job.data * 2


def report(job: Any) -> dict[str, Any]:
    job.update_progress(50)
    job.log("half way")
    job.extend()
    return {"pid": os.getpid(), "token": job.token}


def misbehave(job: Any) -> str:
    match job.data:
        case "exit":
            os._exit(3)
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "sys.exit":
            sys.exit(4)
        case "raise":
            raise ValueError("bad input")
        case "unrecoverable":
            raise Unrecoverable("no use")
        case "snooze":
            if job.snapshot.progress is None:
                job.update_progress("seen")
                raise Snooze(0.05)
        case "unserialisable":
            return object()  # type: ignore[return-value]
        case "hang":
            time.sleep(600)
        case _:
            pass
    return "fine"


def until_there(job: Any) -> str:
    """Runs until the file exists that the job's data name."""
    job.update_progress("running")
    while not os.path.exists(job.data):
        time.sleep(0.005)
    return f"found, cancelled: {job.cancelled}"
