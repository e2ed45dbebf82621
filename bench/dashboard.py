"""The dashboard over large stores: the time of each page, of one look, and the cost of an open page.

    python -m bench.dashboard [--protocol bullmq …] [--jobs 1000000] [--queues 500] [--results bench/results]

Each protocol has a server of its own, one after the other, with one queue of a million jobs in all states and 500 small
ones. Its figures are of a store of queues: pages of campaigns and of the history read other databases and are not among
them. Pages are drawn in this process, without a network, after a look at the store has ended. Writes
`dashboard.json` and `dashboard.md`, and keeps the results of protocols that were not measured again. `--load` measures
open pages beside a busy worker instead, see `bench/open_pages.py`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from bench import asgi, open_pages
from bench.large_store import LARGE, Store, fill, started
from bench.server_cost import Cost, cost_of
from starlette.applications import Starlette

from jobwire import Connection, Feature, Queue, State
from jobwire.dashboard import dashboard
from jobwire.doctor import examine

PROTOCOLS = ("bullmq", "bridgemq", "pgboss", "monque")
GOAL_MS = 150.0


async def pages_of(store: Store) -> dict[str, str]:
    """Returns the address of each page of the large queue."""
    async with Connection(store.url) as connection:
        queue = Queue(LARGE, connection)
        ids = {state: (await queue.jobs(state, limit=1))[0].id for state in (State.FAILED, State.WAITING)}
        far = (await queue.jobs(State.WAITING, limit=50, skip=2_000)).cursor
    given: dict[str, tuple[str, dict[str, str]]] = {
        "overview": ("/", {}),
        "queue": ("/queue", {}),
        **{f"jobs, {state}": ("/jobs", {"state": state}) for state in ("waiting", "delayed", "completed", "failed")},
        "jobs, far from the first": ("/jobs", {"state": "waiting", "cursor": far or ""}),
        "jobs, by error": ("/jobs", {"state": "failed", "error": "KeyError"}),
        "jobs, by a name that none has": ("/jobs", {"state": "waiting", "name": "nothing"}),
        "job, failed": ("/job", {"id": ids[State.FAILED]}),
        "job, waiting": ("/job", {"id": ids[State.WAITING]}),
        "causes": ("/failures", {}),
        "causes, read less than 10 s before": ("/failures", {}),
        "workers": ("/workers", {}),
        "schedules": ("/schedules", {}),
        "events": ("/events", {}),
        "flow": ("/flow", {"id": ids[State.WAITING]}),
        "preview": ("/preview", {"verb": "retry", "which": "matching", "state": "failed"}),
        "health": ("/health", {}),
    }
    where = {"store": "shop", "queue": LARGE}
    return {
        name: f"{path}?{urlencode({**where, **more})}" if path != "/" else path for name, (path, more) in given.items()
    }


async def measured(cost: Cost, act: Callable[[], Awaitable[Any]], times: int) -> dict[str, float]:
    """Returns the milliseconds of an act, and what it costs on both sides."""
    taken: list[float] = []
    cost.begin()
    for _ in range(times):
        began = time.perf_counter()
        await act()
        taken.append((time.perf_counter() - began) * 1000)
    commands, own, servers = cost.end()
    return {
        "p50_ms": statistics.median(taken),
        "max_ms": max(taken),
        "commands": commands / times,
        "cpu_ms": own * 1000 / times,
        "store_cpu_ms": servers * 1000 / times,
    }


async def idle(app: Starlette, cost: Cost, seconds: float, *, open_page: bool) -> dict[str, float]:
    """Returns CPU seconds per minute while nothing happens in the store, with one open page or none."""
    page = asyncio.create_task(asgi.keep_open(app, "/")) if open_page else None
    await asyncio.sleep(5)  # the first look and the first drawing are not idle
    cost.begin()
    began = time.perf_counter()
    await asyncio.sleep(seconds)
    commands, own, servers = cost.end()
    minutes = (time.perf_counter() - began) / 60
    if page is not None:
        page.cancel()
        await asyncio.gather(page, return_exceptions=True)
    return {"commands": commands / minutes, "cpu_s": own / minutes, "store_cpu_s": servers / minutes}


async def measure(store: Store, draws: int, seconds: float) -> dict[str, Any]:
    addresses = await pages_of(store)
    app = dashboard({"shop": store.url}, allow_actions=True)
    board = app.state.board
    shop = board.stores["shop"]
    for name, feature in (("events", Feature.EVENTS), ("flow", Feature.FLOWS)):
        if not shop.has(feature):
            addresses.pop(name, None)
    with cost_of(store) as cost:
        # One look by itself: the first has to find the queues, later ones know them.
        first = await measured(cost, shop._look, 1)
        look = await measured(cost, shop._look, 5)
        doctor = await measured(cost, lambda: examine(shop.connection), 1)
        print(store.protocol, "look", _line(look), flush=True)
        board.start()
        await shop.fresh()
        pages: dict[str, Any] = {}
        for name, address in addresses.items():

            async def drawn(address: str = address, name: str = name) -> None:
                if name == "causes":
                    shop._kept.clear()  # else the failures that the last drawing has read are taken
                await (asgi.submit if name == "preview" else asgi.get)(app, address)

            await drawn()
            pages[name] = await measured(cost, drawn, draws)
            print(store.protocol, name, _line(pages[name]), flush=True)
        costs = {"none": await idle(app, cost, seconds, open_page=False)}
        costs["one"] = await idle(app, cost, seconds, open_page=True)
    await board.close()
    return {"first_look": first, "look": look, "doctor": doctor, "pages": pages, "idle": costs}


def _line(one: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:.1f}" for name, value in one.items())


def _ms(one: dict[str, float]) -> str:
    return f"{one['p50_ms']:.0f} ({one['max_ms']:.0f})"


def markdown(results: dict[str, Any]) -> str:
    found = results["protocols"]
    names = list(found)
    lines = ["# The dashboard over large stores", ""]
    for name in names:
        about = found[name]
        lines.append(
            f"* {name}: {about['jobs']:,} jobs in one queue, {about['queues']:,} small queues; load average of the "
            f"machine {about['load']}."
        )
    lines += [
        "",
        f"Server and dashboard share {results['cpus']} CPUs with whatever else runs there. "
        f"The goal is {GOAL_MS:.0f} ms for each page.",
    ]
    pages = list(dict.fromkeys(page for one in found.values() for page in one["pages"]))
    lines += ["", "## Milliseconds of a page: median (slowest)", ""]
    lines += ["| page | " + " | ".join(names) + " |", "|---|" + "---:|" * len(names)]
    for page in pages:
        cells = [found[name]["pages"].get(page) for name in names]
        lines.append(f"| {page} | " + " | ".join("–" if one is None else _ms(one) for one in cells) + " |")
    lines += ["", "## CPU milliseconds of a page: dashboard + store, and commands or statements", ""]
    lines += ["| page | " + " | ".join(names) + " |", "|---|" + "---:|" * len(names)]
    for page in pages:
        cells = [found[name]["pages"].get(page) for name in names]
        shown = ["–" if one is None else f"{_cpu(one)}, {one['commands']:.0f}" for one in cells]
        lines.append(f"| {page} | " + " | ".join(shown) + " |")
    lines += ["", "## One look at all queues", ""]
    lines += [
        "| | median ms (slowest) | first | commands | CPU ms, dashboard + store | doctor, ms |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for name in names:
        look, first = found[name]["look"], found[name]["first_look"]
        doctor = found[name]["doctor"]["p50_ms"]
        lines.append(
            f"| {name} | {_ms(look)} | {first['p50_ms']:.0f} | {look['commands']:.0f} | {_cpu(look)} | {doctor:.0f} |"
        )
    lines += ["", "## While nothing happens: CPU seconds per minute, dashboard + store", ""]
    lines += ["| | no page open | one page open |", "|---|---:|---:|"]
    for name in names:
        none, one = found[name]["idle"]["none"], found[name]["idle"]["one"]
        lines.append(
            f"| {name} | " + " | ".join(f"{i['cpu_s']:.2f} + {i['store_cpu_s']:.2f}" for i in (none, one)) + " |"
        )
    if "load" in results:
        lines += ["", *open_pages.markdown(results["load"])]
    return "\n".join([*lines, ""])


def _cpu(one: dict[str, float]) -> str:
    return f"{one['cpu_ms']:.0f} + {one['store_cpu_ms']:.0f}"


def main() -> None:
    parser = argparse.ArgumentParser(description="the dashboard over large stores")
    parser.add_argument("--protocol", choices=PROTOCOLS, nargs="+", default=list(PROTOCOLS))
    parser.add_argument("--jobs", type=int, default=1_000_000)
    parser.add_argument("--queues", type=int, default=500)
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--idle", type=float, default=60.0, help="seconds for the cost of an open page")
    parser.add_argument("--load", action="store_true", help="open pages beside a busy worker instead")
    parser.add_argument("--rounds", type=int, default=6, help="rounds of --load, in turns with and without pages")
    parser.add_argument("--seconds", type=float, default=20.0, help="seconds of each round of --load")
    parser.add_argument("--open", type=float, default=120.0, help="seconds that all pages of --load stay open at last")
    parser.add_argument("--folder", help="for the servers' data; a temporary one by default")
    parser.add_argument("--results", default=str(Path(__file__).parent / "results"))
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)  # failed jobs are logged with their tracebacks
    target = Path(options.results)
    target.mkdir(parents=True, exist_ok=True)
    file = target / "dashboard.json"
    results: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {"protocols": {}}
    results["cpus"] = os.cpu_count()
    for protocol in options.protocol:
        before = os.getloadavg()[0]
        with tempfile.TemporaryDirectory(dir=options.folder) as folder, started(protocol, Path(folder)) as store:
            if options.load:
                found = asyncio.run(open_pages.measure(store, options.rounds, options.seconds, options.open))
                results.setdefault("load", {})[protocol] = found
            else:
                began = time.perf_counter()
                asyncio.run(fill(store, options.jobs, options.queues))
                print(f"{protocol}: filled in {time.perf_counter() - began:.0f} s", flush=True)
                found = asyncio.run(measure(store, options.draws, options.idle))
                found |= {"jobs": options.jobs, "queues": options.queues}
                results["protocols"][protocol] = found
        found["load"] = f"{before:.1f} to {os.getloadavg()[0]:.1f}"
        file.write_text(json.dumps(results, indent=1) + "\n")
        (target / "dashboard.md").write_text(markdown(results))
    print(f"\n{markdown(results)}\nwritten to {target}/dashboard.json and .md")


if __name__ == "__main__":
    main()
