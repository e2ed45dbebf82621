"""The long version of the faults: `make faults ARGS="--seed 7 --backend bullmq --fault kill_worker --minutes 5"`.

Without arguments, every fault runs on every store that has the notion, and a random mix of them for five minutes on
each. The results go into results.json beside this file, one for each store and fault, and from there into the table and
the picture of docs/faults.md. Exits with 1 if the checker found anything.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import tempfile
import time
from pathlib import Path

from faults.inject import FAULTS
from faults.nursery import Nursery
from faults.report import Results
from faults.run import Plan, Report, run
from faults.stores import STORES

_MIX_MINUTES = 5.0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make faults", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seed", type=int, help="of the random points at which faults happen; printed if not given")
    parser.add_argument("--backend", action="append", choices=list(STORES), help="this store only; may be repeated")
    parser.add_argument("--fault", action="append", choices=list(FAULTS), help="this fault only; may be repeated")
    parser.add_argument("--minutes", type=float, default=0.0, help="repeat each fault for so long; mix: 5")
    parser.add_argument("--short", action="store_true", help="the version of the ordinary suite, without the report")
    parser.add_argument("--keep", type=Path, help="a folder for ledgers and logs of all runs; removed if not given")
    return parser.parse_args()


def main() -> int:
    given = arguments()
    seed = random.randrange(10**6) if given.seed is None else given.seed
    print(f"seed {seed}", flush=True)
    results, broken = Results.read(), 0
    with tempfile.TemporaryDirectory(prefix="jobwire-faults-") as temporary:
        folder = given.keep or Path(temporary)
        chosen = [(protocol, name) for protocol in given.backend or STORES for name in given.fault or FAULTS]
        chosen = [(protocol, name) for protocol, name in chosen if protocol in FAULTS[name].protocols]
        # One server for all faults of a kind of store.
        kinds = dict.fromkeys(FAULTS[name].stores[protocol] for protocol, name in chosen)
        for kind in kinds:
            names = [name for protocol, name in chosen if FAULTS[name].stores[protocol] is kind]
            home = folder / kind.__name__
            with kind.start(home / "server") as server, Nursery(kind(server, "imports").url) as nursery:
                for name in names:
                    minutes = given.minutes or (_MIX_MINUTES if name == "mix" else 0.0)
                    plan = Plan(name, seed, short=given.short, minutes=0.0 if given.short else minutes)
                    place = home / f"{name}-{int(time.time())}"
                    place.mkdir()
                    store = kind(server, f"faults_{name}")
                    report = asyncio.run(run(store, nursery, place, plan))
                    store.remove()
                    show(report)
                    broken += bool(report.violations)
                    if not given.short:
                        results.add(report)
    return 1 if broken else 0


def show(report: Report) -> None:
    figures = report.figures
    print(
        f"{report.protocol:9} {report.fault:22} {report.times:4} times  {figures.acknowledged:7} jobs  "
        f"{figures.again:5} run again  {figures.lost:5} outcomes refused  {report.seconds:6.1f} s  "
        f"{'held' if not report.violations else f'{len(report.violations)} VIOLATIONS'}",
        flush=True,
    )
    for found in report.violations[:20]:
        print(f"          {found[:500]}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
