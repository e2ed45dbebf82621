"""The routes of a job type as a worker has read them, and those of them that admit it."""

from __future__ import annotations

from collections.abc import Sequence

from jobwire.backends.bridgemq.native.routing import parse_definition, scope_of
from jobwire.backends.bridgemq.worker_options import WorkerOptions
from jobwire.backends.redisio.scripts import Argument


class KnownRoutes:
    """The routes that admit one worker. `rows` are arguments of a claim: per route its name, most jobs at once or '',
    most per minute or ''."""

    def __init__(self, options: WorkerOptions, job_type: str) -> None:
        self._options = options
        self._scopes = (scope_of(job_type), scope_of(job_type, options.profile.server))
        self.versions: tuple[str, str] = ("", "")
        self.rows: list[Argument] = []

    def update(self, version: bytes, here: Sequence[bytes], version_there: bytes, there: Sequence[bytes]) -> None:
        """Replaces the routes of both scopes: all servers, and the worker's own."""
        self.versions = (version.decode(), version_there.decode())
        self.rows = []
        for scope, fields in zip(self._scopes, (here, there), strict=True):
            for signature, definition in zip(fields[::2], fields[1::2], strict=True):
                if signature != b"v":
                    self._add(signature.decode(errors="replace"), scope, definition)

    def _add(self, signature: str, scope: str, definition: bytes) -> None:
        route, options = parse_definition(definition), self._options
        if route.admits(options.profile):
            self.rows += (
                f"{signature}:{scope}",
                _smaller(route.max_concurrent, options.max_concurrent),
                _smaller(route.max_per_minute, options.max_per_minute),
            )


def _smaller(one: int | None, other: int | None) -> Argument:
    given = [limit for limit in (one, other) if limit is not None]
    return min(given) if given else ""
