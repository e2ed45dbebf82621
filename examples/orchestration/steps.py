"""The steps of the pipeline for a scheduler, each a command of its own: the scheduler's environment needs no Spark.

JOBWIRE is the command (`jobwire`), JOBWIRE_STORES the stores separated by spaces, JOBWIRE_LAKE the lake's folder and
JOBWIRE_EXPORT the folder of the exported tables. A step that fails may be repeated: each one continues where it was.
"""

from __future__ import annotations

import os
import shlex
import subprocess

FAILED_CHECKS = 5


class PoorQuality(Exception):
    """The tables were built, and a check of data quality has failed. Building again does not help: look at them."""


def ingest() -> None:
    """Reads what is new in the stores."""
    _run("ingest", *shlex.split(os.environ.get("JOBWIRE_STORES", "")))


def build() -> None:
    """Builds silver and gold. Raises PoorQuality if a check has failed."""
    _run("build", "--fail-on", "quality")


def report() -> None:
    """Writes the report of what came since the last one."""
    _run("report", "--since-last", "--out", os.environ.get("JOBWIRE_REPORT", "report"))


def export() -> None:
    """Brings the Delta tables up to the lake."""
    _run("export", "--format", "delta", "--to", os.environ.get("JOBWIRE_EXPORT", "delta"))


def lineage() -> str:
    """Returns the events of OpenLineage that are new, a line of JSON each."""
    return _run("lineage", "--since-last")


def _run(step: str, *arguments: str) -> str:
    command = [*shlex.split(os.environ.get("JOBWIRE", "jobwire")), "pipeline", step, *arguments]
    command += ["--lake", os.environ.get("JOBWIRE_LAKE", ".jobwire/lake")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == FAILED_CHECKS:
        raise PoorQuality(done.stderr)
    if done.returncode:
        raise RuntimeError(f"{shlex.join(command)} ended with {done.returncode}: {done.stderr}")
    return done.stdout
