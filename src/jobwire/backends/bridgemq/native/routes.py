"""The routes of a job type that a worker knows, and those of them that admit it."""

from __future__ import annotations

from collections.abc import Sequence

from jobwire.backends.bridgemq.native.routing import parse_words, scope_of
from jobwire.backends.bridgemq.worker_options import WorkerOptions
from jobwire.backends.redisio.scripts import Argument


class KnownRoutes:
    """`rows` is what a claim asks for: per route its name, most jobs at once or '', most per minute or ''."""

    def __init__(self, options: WorkerOptions, job_type: str) -> None:
        self._options = options
        self._scopes = (scope_of(job_type), scope_of(job_type, options.profile.server))
        self.versions: tuple[str, str] = ("", "")
        self.rows: list[Argument] = []

    def learn(self, version: bytes, here: Sequence[bytes], version_there: bytes, there: Sequence[bytes]) -> None:
        """Take over the routes of both scopes."""
        self.versions = (version.decode(), version_there.decode())
        self.rows = []
        for scope, fields in zip(self._scopes, (here, there), strict=True):
            for signature, words in zip(fields[::2], fields[1::2], strict=True):
                if signature != b"v":
                    self._add(signature.decode(errors="replace"), scope, words)

    def _add(self, signature: str, scope: str, words: bytes) -> None:
        route, options = parse_words(words), self._options
        if route.admits(options.profile):
            self.rows += (
                f"{signature}:{scope}",
                _smaller(route.max_concurrent, options.max_concurrent),
                _smaller(route.max_per_minute, options.max_per_minute),
            )


def _smaller(one: int | None, other: int | None) -> Argument:
    given = [limit for limit in (one, other) if limit is not None]
    return min(given) if given else ""
