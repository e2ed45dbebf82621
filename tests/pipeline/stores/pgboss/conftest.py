"""A pg-boss queue seen from three sides: the pipeline's store, jobwire's queue, plain SQL."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row

from jobwire import Queue, urls
from jobwire.pipeline.stores.boundary import QueueStore
from pipeline.stores.reading import opened

QUEUE = "letters"


@pytest.fixture
def url(place: Callable[[str], str]) -> str:
    return place("pgboss")


@pytest.fixture
def schema(url: str) -> str:
    return urls.parse(url).options["schema"]


@pytest.fixture
def sql(queue: Queue, url: str, schema: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(urls.parse(url).driver_url, autocommit=True, row_factory=dict_row) as connection:
        connection.execute(f'SET search_path TO "{schema}", public; SET timezone TO UTC')
        yield connection


@pytest.fixture
def store(url: str, queue: Queue) -> Iterator[QueueStore]:
    store = opened(url, QUEUE)
    yield store
    store.close()
