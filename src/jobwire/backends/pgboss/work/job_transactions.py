"""The transaction that a handler's writes and its job's completion share."""

from __future__ import annotations

from typing import Any

from jobwire.backends.pgboss.work.claims import PgClaim
from jobwire.boundary import Claim


class PgTransactions:
    """Implements Transactions."""

    async def transaction(self, claim: Claim, *, blocking: bool) -> Any:
        assert isinstance(claim, PgClaim)  # noqa: S101 - made by this backend
        return await claim.transaction(blocking=blocking)
