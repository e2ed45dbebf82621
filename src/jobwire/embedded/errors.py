"""What can keep an embedded server from running."""

from __future__ import annotations

from jobwire.errors import JobwireError


class EmbeddedUnavailable(JobwireError):
    """No embedded server can run here."""


class EmbeddedFailed(JobwireError):
    """An embedded server did not start."""
