"""The service behind an API: the one that it was given, or one that it opens by itself."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import Depends, Request

from jobwire.campaigns.service import CampaignService


class OpenedService:
    """A service. One that belongs to the API is opened by the first request, since an application that is mounted in
    another gets no signal at the start. It is closed by `close`."""

    def __init__(self, service: CampaignService, *, owned: bool) -> None:
        self._service = service
        self._owned = owned
        self._is_open = not owned
        self._opening = asyncio.Lock()

    async def get(self) -> CampaignService:
        """Returns the service, open."""
        if not self._is_open:
            async with self._opening:
                if not self._is_open:
                    await self._service.__aenter__()
                    self._is_open = True
        return self._service

    async def close(self) -> None:
        """Closes the service if it belongs to the API."""
        if self._owned and self._is_open:
            self._is_open = False
            await self._service.__aexit__(None, None, None)


async def _of_app(request: Request) -> CampaignService:
    return await request.app.state.opened.get()


Service = Annotated[CampaignService, Depends(_of_app)]
