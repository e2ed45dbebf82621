"""Runs the timing-dependent half of the suite again and again under load: `make test-repeat TIMES=100`.

Every failure goes into the file with what is needed to see it again: the round, the seed of its random tests, and
pytest's whole report of that round. Exits with 1 if there was one.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
TESTS = ["tests/worker", "tests/conformance", "tests/backends", "tests/faults", "tests/differential"]
_BUSY = "while True: pass"


@contextlib.contextmanager
def busy(processes: int) -> Iterator[None]:
    """Keeps so many processes busy, as neighbours on the machine would."""
    started = [subprocess.Popen([sys.executable, "-c", _BUSY]) for _ in range(processes)]
    try:
        yield
    finally:
        for process in started:
            process.kill()
            process.wait()


def run_once(tests: list[str], seed: int, workers: int) -> tuple[list[str], str]:
    """The ids of the tests that failed, and the report."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-n",
        str(workers),
        "--dist",
        "loadgroup",
        "-p",
        "no:cacheprovider",
    ]
    command += ["--no-cov", "-rfE", f"--hypothesis-seed={seed}", *tests]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    report = done.stdout + done.stderr
    summary = report.rpartition("short test summary info")[2]  # a log line may begin like one of these, too
    failed = [
        line.split(" ", 1)[1].split(" - ")[0] for line in summary.splitlines() if line.startswith(("FAILED ", "ERROR "))
    ]
    return (failed or ["the run itself"]) if done.returncode else [], report


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "tests", nargs="*", default=TESTS, help="files or folders; by default the timing-dependent half"
    )
    parser.add_argument("--times", type=int, default=100, help="rounds")
    parser.add_argument("--load", type=int, default=2, help="busy processes beside the tests")
    parser.add_argument("--workers", type=int, default=2, help="processes that run tests")
    parser.add_argument("--out", type=Path, default=ROOT / ".repeat.log", help="where failures are written")
    given = parser.parse_args()
    failures: Counter[str] = Counter()
    with busy(given.load), given.out.open("a", encoding="utf-8") as out:
        for number in range(1, given.times + 1):
            seed, began = random.randrange(2**32), time.monotonic()
            failed, report = run_once(given.tests, seed, given.workers)
            failures.update(failed)
            if failed:
                print(f"=== round {number} of {given.times}, seed {seed}\n{report}", file=out, flush=True)
            print(
                f"round {number}: {len(failed)} failed, {time.monotonic() - began:.0f} s",
                *failed,
                sep="\n  ",
                flush=True,
            )
    for test, times in failures.most_common():
        print(f"{times:4d} of {given.times}: {test}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
