"""The pipeline: reading, writing, building, moving and working, beside the same work without Spark.

    python -m bench.pipeline --all
    python -m bench.pipeline --only read --only build --jobs 1000000 --events 100000,1000000

Writes `pipeline.json`, `pipeline.md` and `pipeline.svg`. Parts that are not measured keep their results of before.
Nothing is asserted about timings, only that all was done and that both ways say the same.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import tempfile
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

from bench.pipeline import building, days, many_queues, moves, picture, reading, running, summary, working, writing
from bench.pipeline.places import apart

PARTS = ("read", "events", "write", "build", "days", "run", "queues", "move", "work")


def main() -> None:
    options = _options()
    results = _before(Path(options.results))
    with_rounds = {"rounds": options.rounds}
    # Each in a process of its own, so that no Java machine stays beside the next part; building has them by itself.
    parts: dict[str, tuple[Callable[[Path], Any], dict[str, Any]]] = {
        "read": (lambda at: apart(reading.jobs, at, options.jobs, options.rounds), with_rounds),
        "events": (lambda at: apart(reading.events, at, options.stream, options.rounds), with_rounds),
        "write": (lambda at: apart(writing.measure, at, options.written, options.rounds), with_rounds),
        "build": (lambda at: building.measure(at, options.events, options.memory), {"memory": options.memory}),
        "days": (
            lambda at: days.measure(at, options.day_events, options.days, options.memory),
            {"memory": options.memory},
        ),
        "run": (lambda at: running.measure(at, options.run_events, options.memory), {"memory": options.memory}),
        "queues": (lambda at: apart(many_queues.measure, at, options.queues), {}),
        "move": (lambda at: apart(moves.measure, at, options.moved), {}),
        "work": (lambda at: working.measure(at, options.worked), {}),
    }
    for part in PARTS if options.all else options.only:
        measure, settings = parts[part]
        results[part] = _measured(part, measure, settings)
        _write(Path(options.results), results)
    print(f"\n{summary.markdown(results)}\nwritten to {options.results}/pipeline.json, .md and .svg")


def _measured(part: str, measure: Callable[[Path], Any], settings: dict[str, Any]) -> dict[str, Any]:
    before, began = os.getloadavg()[0], time.perf_counter()
    print(f"{part} …", flush=True)
    with tempfile.TemporaryDirectory(prefix="jobwire-bench-", ignore_cleanup_errors=True) as folder:
        found = measure(Path(folder))
    about = {
        "load_before": round(before, 1),
        "load_after": round(os.getloadavg()[0], 1),
        "minutes": (time.perf_counter() - began) / 60,
        "cpus": os.cpu_count(),
        "python": platform.python_version(),
        "spark": metadata.version("pyspark"),
        **settings,
    }
    return {"found": found, "about": about}


def _before(folder: Path) -> dict[str, Any]:
    file = folder / "pipeline.json"
    known: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    return known


def _write(folder: Path, results: dict[str, Any]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pipeline.json").write_text(json.dumps(results, indent=1) + "\n")
    (folder / "pipeline.md").write_text(summary.markdown(results))
    (folder / "pipeline.svg").write_text(picture.draw(results))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="The pipeline beside the same work without Spark")
    chosen = parser.add_mutually_exclusive_group(required=True)
    chosen.add_argument("--all", action="store_true", help="every part")
    chosen.add_argument("--only", action="append", choices=PARTS, help="a part; may be given several times")
    parser.add_argument("--rounds", type=int, default=3, help="of reading and writing, besides one to warm up")
    parser.add_argument("--jobs", type=int, default=100_000, help="jobs to read from each store")
    parser.add_argument("--stream", type=int, default=200_000, help="events to read from a stream")
    parser.add_argument("--written", type=int, default=50_000, help="jobs to write at a time")
    parser.add_argument(
        "--events", type=_sizes, default=[100_000, 1_000_000, 5_000_000], help="sizes of a build, with commas between"
    )
    parser.add_argument("--day-events", type=int, default=100_000, help="events of a day")
    parser.add_argument("--days", type=_sizes, default=[2, 100, 300], help="days to build, with commas between")
    parser.add_argument("--run-events", type=int, default=5_000_000, help="events of the whole run")
    parser.add_argument(
        "--queues", type=_sizes, default=[1_000, 10_000], help="numbers of queues in a store, with commas between"
    )
    parser.add_argument("--moved", type=int, default=50_000, help="jobs to move between each pair")
    parser.add_argument("--worked", type=int, default=20_000, help="jobs of each queue that workers run")
    parser.add_argument("--memory", default="4g", help="of Spark's driver, and of DuckDB, for build and run")
    parser.add_argument("--results", default=str(Path(__file__).parents[1] / "results"))
    return parser.parse_args()


def _sizes(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


if __name__ == "__main__":
    main()
