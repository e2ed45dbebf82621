"""The example of Django: one job in its transaction, one after the commit."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from jobwire.sync import Queue

from .conftest import EXAMPLES, running, until

pytestmark = pytest.mark.slow
SHOP = EXAMPLES / "django_shop"


def test_orders_and_their_jobs_are_committed_together(tmp_path: Path, database: str) -> None:
    url = f"pgboss+{database}"
    environment = {
        "DATABASE_URL": database,
        "JOBWIRE_URL": url,
        "DJANGO_SETTINGS_MODULE": "settings",
        "PYTHONPATH": os.pathsep.join([str(SHOP), os.environ.get("PYTHONPATH", "")]),
    }
    asked = subprocess.run(
        [sys.executable, "-W", "error", Path(__file__).with_name("django_requests.py")],
        cwd=SHOP,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert asked.returncode == 0, asked.stderr
    seen = json.loads(asked.stdout)
    assert seen["statuses"] == [201, 500, 201]
    assert seen["items"] == ["chair", "table"]

    with Queue("ship", url) as ship, Queue("mail_receipt", url) as receipts:
        assert sorted(job.data["order_id"] for job in ship.iter_jobs("waiting")) == seen["orders"]
        assert sorted(job.data["order_id"] for job in receipts.iter_jobs("waiting")) == seen["orders"]

    log = tmp_path / "worker.log"
    with running(log, sys.executable, SHOP / "worker.py", cwd=SHOP, **environment):

        def rows() -> list[tuple[str, str, bool]] | None:
            with psycopg.connect(database) as connection:
                found = connection.execute("select item, label, mailed from shop_order order by id").fetchall()
            return found if all(label and mailed for _, label, mailed in found) else None

        first, second = seen["orders"]
        assert until(rows, "the jobs are not run", log) == [
            ("chair", f"PARCEL-{first}", True),
            ("table", f"PARCEL-{second}", True),
        ]
    assert "Traceback" not in log.read_text()
