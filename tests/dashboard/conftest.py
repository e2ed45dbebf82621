"""The dashboard over one store of each protocol, and browsers without a window: clients that send its forms."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest

from conformance.conftest import attempts, databases, eventually, finished, needs, schemas, url  # noqa: F401 fixtures
from dashboard.browsing import Browser
from jobwire import Connection
from jobwire.dashboard import dashboard


@pytest.fixture
async def browse(connection: Connection) -> AsyncIterator[Callable[..., Browser]]:
    """Makes a browser of a dashboard with the store `shop`, over the connection of the test."""
    async with AsyncExitStack() as stack:

        def make(*, headers: dict[str, str] | None = None, **options: Any) -> Browser:
            app = dashboard({"shop": connection}, **options)
            browser = Browser(app, headers or {})
            stack.push_async_callback(app.state.board.close)
            stack.push_async_callback(browser.close)
            return browser

        yield make
