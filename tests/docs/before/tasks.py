import contextlib
import contextvars
import logging

log = logging.getLogger(__name__)
tenant = contextvars.ContextVar("tenant", default="acme")


class Session: ...


class Pool:
    def __init__(self, url): ...

    async def __aenter__(self):
        return self

    async def __aexit__(self, *error): ...

    @contextlib.asynccontextmanager
    async def session(self):
        yield Session()


async def old_code(data): ...
