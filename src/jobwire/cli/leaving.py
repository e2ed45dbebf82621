"""Makes sure that `jobwire worker` ends once its worker has stopped.

Before it exits, Python waits for threads that handlers have started, including those of `asyncio.to_thread`. A service
manager would wait for its own time limit and then kill the process.
"""

from __future__ import annotations

import logging
import os
import sys
import threading

_PATIENCE = 5.0

logger = logging.getLogger("jobwire.worker")


def leave_soon(code: int = 0) -> None:
    """Ends the process after a few seconds, if it has not ended by itself."""
    timer = threading.Timer(_PATIENCE, _leave, [code])
    timer.daemon = True
    timer.start()


def _leave(code: int) -> None:
    main = threading.main_thread()
    names = [thread.name for thread in threading.enumerate() if not (thread.daemon or thread is main)]
    logger.error(
        "ending the process: the worker has stopped, but threads are still running (%s)", ", ".join(names) or "unknown"
    )
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
