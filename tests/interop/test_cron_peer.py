"""Cron beside the real cron-parser: fresh random questions on every run."""

from __future__ import annotations

import secrets
import subprocess

import pytest
from tests.interop.node_process import NODE
from tests.interop.peer import SCRIPTS
from tests.unit.cron_vectors import difference, read_vectors

QUESTIONS = 1000


@pytest.mark.slow
def test_fresh_random_questions_get_the_peers_answers() -> None:
    seed = secrets.randbelow(2**32)
    told = subprocess.run(
        [NODE, SCRIPTS / "cron_vectors.mjs", str(seed), str(QUESTIONS)],
        capture_output=True,
        check=True,
        encoding="utf-8",
        timeout=120,
    )

    vectors = read_vectors(told.stdout)
    differences = [found for vector in vectors if (found := difference(vector))]

    assert differences == [], f"again with: node cron_vectors.mjs {seed} {QUESTIONS}"
    assert len(vectors) > QUESTIONS
