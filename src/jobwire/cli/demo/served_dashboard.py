"""The dashboard of the demo's stores, served in another thread until the demo ends."""

# ruff: noqa: PLC0415 - the packages of the dashboard are an extra

from __future__ import annotations

import importlib.util
import socket
from collections.abc import Generator, Sequence
from contextlib import closing, contextmanager

from jobwire.cli.demo.demo_store import DemoStore
from jobwire.cli.output import remark

_HOST, _PORT = "127.0.0.1", 8020
_PACKAGES = ("starlette", "jinja2", "uvicorn")


@contextmanager
def served_dashboard(stores: Sequence[DemoStore], *, campaigns: str, lake: str | None) -> Generator[str | None]:
    """Serves the dashboard while the block runs, with actions, since the data is the demo's own. `campaigns` is the URL
    of their database, and `lake` the folder of the history. Yields its address, or None after a remark if its packages
    are missing."""
    if any(importlib.util.find_spec(package) is None for package in _PACKAGES):
        remark("no dashboard: it needs more packages, pip install 'jobwire[web]'")
        yield None
        return
    from jobwire.dashboard import dashboard
    from jobwire.serving.server import served_in_background

    if importlib.util.find_spec("pyarrow") is None:
        lake = None  # Spark is still being installed
    shown = {store.protocol: store.url for store in stores} | {"campaigns": campaigns}
    app = dashboard(shown, allow_actions=True, lake=lake)
    with (
        closing(_listening()) as listening,
        served_in_background(app, listening, open_to_all=True, on_stop=app.state.board.stop) as url,
    ):
        yield f"{url}/"


def _listening() -> socket.socket:
    """Returns a socket on the dashboard's usual port, or on a free one if that is taken."""
    from jobwire.serving.listening import listen

    try:
        return listen(_HOST, _PORT, open_to_all=True, variable="")
    except OSError:
        return listen(_HOST, 0, open_to_all=True, variable="")
