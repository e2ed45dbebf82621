"""jobwire beside the Python queues that pip can install, on one Valkey, in turns.

    python -m bench.peers [--quick] [--rounds 3] [--only celery --only rq] [--results bench/results]

Makes the peers' virtualenvs at the first run. Writes `peers.json`, `peers.md` and `peers.svg`. Nothing is asserted
about times; a contender that does not run all of its jobs does not end, and fails the run after three minutes.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import tempfile
from pathlib import Path
from typing import Any

from bench.machine import processor
from bench.peers import picture, summary
from bench.peers.contenders import PEERS, Contender, contenders
from bench.peers.race import Race
from bench.peers.scenarios import Scenario, scenarios

from jobwire import embedded


def main() -> None:
    options = _options()
    rivals = contenders(options.only)
    chosen = scenarios(0.1 if options.quick else 1.0)
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder, embedded.valkey(folder, durable=False) as server:
        race = Race(server)
        runs = _rounds(race, chosen, rivals, options.rounds)
        about = {**_about(race, options.rounds, load), "quick": options.quick}
    _write(Path(options.results), chosen, [rival.name for rival in rivals], runs, about)


def _rounds(race: Race, chosen: list[Scenario], rivals: list[Contender], rounds: int) -> summary.Runs:
    """In every round each contender runs each scenario once; the one that begins changes from round to round."""
    runs: summary.Runs = {scenario.name: {rival.name: [] for rival in rivals} for scenario in chosen}
    for number in range(rounds):
        first = number % len(rivals)
        for scenario in chosen:
            for rival in [*rivals[first:], *rivals[:first]]:
                result = race.run(rival, scenario)
                if result is not None:
                    runs[scenario.name][rival.name].append(result)
            print(f"round {number + 1}  {scenario.title}", flush=True)
    return runs


def _about(race: Race, rounds: int, load: float) -> dict[str, Any]:
    server: dict[str, Any] = race.client.info("server")
    return {
        "server": f"Valkey {server['valkey_version']}" if "valkey_version" in server else "Redis",
        "machine": processor(),
        "cpus": os.cpu_count(),
        "load": round(load, 1),
        "rounds": rounds,
        "python": platform.python_version(),
    }


def _write(folder: Path, chosen: list[Scenario], names: list[str], runs: summary.Runs, about: dict[str, Any]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "peers.json").write_text(json.dumps({"about": about, "runs": runs}, indent=1) + "\n")
    text = summary.markdown(chosen, names, runs, about)
    (folder / "peers.md").write_text(text)
    (folder / "peers.svg").write_text(picture.draw(chosen, names, runs))
    print(f"\n{text}\nwritten to {folder}/peers.json, .md and .svg")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.peers", description="Python queues on Redis, beside jobwire")
    parser.add_argument("--quick", action="store_true", help="a tenth of the work")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", action="append", choices=list(PEERS), help="may be given several times")
    parser.add_argument("--results", default=str(Path(__file__).parents[1] / "results"))
    return parser.parse_args()


if __name__ == "__main__":
    main()
