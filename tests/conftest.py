"""Fixtures of jobwire's own suite. The servers are those of `jobwire.testing.plugin`, as users have them."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest
import redis

from jobwire.embedded import Server


@pytest.fixture
def unique() -> str:
    """A name that no other test has: for a prefix, a schema, a database."""
    return f"test_{uuid.uuid4().hex[:12]}"


@pytest.fixture
def redis_client(jobwire_valkey: Server) -> Iterator[redis.Redis]:
    """A plain driver connection to the run's Valkey, for looking at what jobwire stored."""
    with redis.Redis.from_url(jobwire_valkey.url, decode_responses=True) as client:
        yield client
