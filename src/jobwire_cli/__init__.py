"""The command `jobwire`, before its packages are loaded.

Loading them takes a moment, and Ctrl-C in it would print a traceback of imports. So it ends the process at once, until
the command itself answers to it.
"""

from __future__ import annotations

import signal


def main() -> int:
    """Runs the command line and returns its exit code."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from jobwire.cli import main as run  # noqa: PLC0415 - this is what takes a moment

    signal.signal(signal.SIGINT, before)
    return run()
