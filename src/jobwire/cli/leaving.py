"""Makes sure that `jobwire worker` ends once its worker has stopped.

Before it exits, Python waits for threads that handlers have started, including those of `asyncio.to_thread`, and
asyncio waits for tasks that ignore their cancellation. A service manager would wait for its own time limit and then
kill the process.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import threading

_WAIT_FOR_THREADS = ".shutdown_default_executor"
"""The end of the name of asyncio's own task that waits for the threads of `asyncio.to_thread`."""
_PATIENCE = 5.0

logger = logging.getLogger("jobwire.worker")


def leave_soon(code: int = 0) -> None:
    """Ends the process after a few seconds, if it has not ended by itself. Called in the worker's event loop."""
    timer = threading.Timer(_PATIENCE, _leave, [code, asyncio.get_running_loop()])
    timer.daemon = True
    timer.start()


def _leave(code: int, loop: asyncio.AbstractEventLoop) -> None:
    main = threading.main_thread()
    # While tasks run, so does the loop, and its idle threads are there only because of that.
    tasks = [getattr(task.get_coro(), "__qualname__", "unknown") for task in asyncio.all_tasks(loop)]
    what, names = "tasks", [name for name in tasks if not name.endswith(_WAIT_FOR_THREADS)]
    if not loop.is_running() or not names:
        what, names = "threads", [one.name for one in threading.enumerate() if not (one.daemon or one is main)]
    logger.error(
        "ending the process: the worker has stopped, but %s are still running (%s)", what, ", ".join(names) or "unknown"
    )
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
