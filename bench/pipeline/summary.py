"""The results as Markdown: a section for each part that was measured."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

BARS = {"bullmq": 0.8, "bridgemq": 0.8, "monque": 0.8}
TIMES_ROW_BY_ROW = 2.0
DAYS_BAR, NO_NEWS_BAR = 1.5, 3.0
"""Times the second day, and seconds."""
QUEUES_BARS = {"no_news": 10.0, "planned": 60.0}
"""Seconds."""
TITLES = {"bullmq": "BullMQ", "bridgemq": "BridgeMQ", "pgboss": "pg-boss", "monque": "Monque"}


def markdown(results: dict[str, Any]) -> str:
    """All that is there, in the order of the work: reading, writing, building, moving, workers."""
    writers = {
        "read": _read,
        "events": _events,
        "write": _write,
        "build": _build,
        "days": _days,
        "run": _run,
        "queues": _queues,
        "move": _move,
        "work": _work,
    }
    lines = ["# The pipeline", ""]
    for part, writer in writers.items():
        if part in results:
            lines += [*writer(results[part]["found"]), "", _about(results[part]["about"]), ""]
    return "\n".join(lines)


def _about(about: dict[str, Any]) -> str:
    rounds = f", medians of {about['rounds']} rounds" if "rounds" in about else ""
    return (
        f"{about['cpus']} CPUs shared by Spark, its Python processes and the stores, load {about['load_before']} "
        f"before and {about['load_after']} after{rounds}; Python {about['python']}, Spark {about['spark']}; "
        f"{about['minutes']:.1f} minutes."
    )


def _read(found: dict[str, Any]) -> Iterable[str]:
    yield "## Reading jobs"
    yield ""
    yield (
        "Rows per second with all columns, through Spark into a sink that drops them, beside the same reader without "
        "Spark: the same slices, as many processes. A ratio is the median of the rounds' own. *Rows* leaves out what "
        "Spark takes to begin a read, which is measured in the same round on a queue without jobs; bars: 0.8."
    )
    yield ""
    yield from _reads(found)
    yield ""
    for cores, of_cores in found.items():
        rows = of_cores["table"]["pgboss"]["row_by_row"]
        obvious, statement = rows["obvious"], rows["statement"]
        yield (
            f"pg-boss on {_cores(cores)} beside the obvious source in the same slices, psycopg's rows made into tuples "
            f"in Python: {obvious['times']:.1f} times its {obvious['rate']:,.0f} rows/s "
            f"({_judged(obvious['times'], TIMES_ROW_BY_ROW)}, bar {TIMES_ROW_BY_ROW:g}). Beside psycopg's rows of "
            f"jobwire's own statement, which has PostgreSQL make the values: {statement['times']:.1f} times."
        )
        yield ""


def _events(found: dict[str, Any]) -> Iterable[str]:
    yield "## Reading events"
    yield ""
    yield "A BullMQ event stream, in the same way."
    yield ""
    yield from _reads(found)


def _reads(found: dict[str, Any]) -> Iterable[str]:
    yield "| source | cores | Spark | plain | ratio | start of a read | ratio, rows | |"
    yield "|---|---:|---:|---:|---:|---:|---:|---|"
    for cores, of_cores in found.items():
        for protocol, row in of_cores["table"].items():
            bar = BARS.get(protocol)
            yield (
                f"| {TITLES[protocol]} | {cores} | {row['rate']:,.0f}/s | {row['plain']:,.0f}/s | {row['ratio']:.2f} "
                f"| {row['start']:.2f} s | {row['ratio_rows']:.2f} "
                f"| {_judged(row['ratio_rows'], bar) if bar else ''} |"
            )
    yield ""
    for cores, of_cores in found.items():
        memory = of_cores["memory"]
        yield (
            f"On {_cores(cores)}: Java at most {memory['java']:,.0f} MiB, Python workers together "
            f"{memory['workers']:,.0f} MiB."
        )


def _write(found: dict[str, Any]) -> Iterable[str]:
    yield "## Writing jobs"
    yield ""
    yield (
        "A DataFrame becomes jobs with ids of their own, added if absent; beside it `Queue.add_many` of one process, "
        "which gives no ids. *Start* is a write of one row in each of its tasks."
    )
    yield ""
    yield "| target | cores | Spark | add_many | ratio | start of a write | ratio, rows |"
    yield "|---|---:|---:|---:|---:|---:|---:|"
    for cores, of_cores in found.items():
        for protocol, row in of_cores["table"].items():
            yield (
                f"| {TITLES[protocol]} | {cores} | {row['rate']:,.0f}/s | {row['plain']:,.0f}/s | {row['ratio']:.2f} "
                f"| {row['start']:.2f} s | {row['ratio_rows']:.2f} |"
            )


def _build(rows: list[dict[str, Any]]) -> Iterable[str]:
    yield "## Building"
    yield ""
    yield (
        "Bronze into all tables of silver and gold, published; then the same three gold tables (throughput, latency, "
        "failures) without keeping anything, by Spark alone and by a DuckDB script of "
        "two cores over the same files. The answers were compared: counts are equal, percentiles within 2 %. "
        "Spark starts cold each time; the session itself is not counted."
    )
    yield ""
    yield "| events | build | events/s | Spark, three tables | DuckDB | build / DuckDB | Java | workers | DuckDB |"
    yield "|---:|---:|---:|---:|---:|---:|---:|---:|---:|"
    for row in rows:
        built, alone, other = row["build"], row["alone"], row["plain"]
        yield (
            f"| {row['events']:,} | {built['seconds']:.1f} s | {row['events'] / built['seconds']:,.0f} "
            f"| {alone['seconds']:.1f} s | {other['seconds']:.1f} s | {built['seconds'] / other['seconds']:.1f} "
            f"| {built['memory']['java']:,.0f} MiB | {built['memory']['workers']:,.0f} MiB "
            f"| {other['memory']:,.0f} MiB |"
        )
    yield ""
    yield _growth(rows)
    yield ""
    yield _winner(rows)
    yield ""
    yield "Seconds from a table's first row to its publication, gold's side by side:"
    yield ""
    names = list(rows[-1]["build"]["stages"])
    yield f"| events | {' | '.join(name.removeprefix('gold/') for name in names)} |"
    yield f"|---:|{'---:|' * len(names)}"
    for row in rows:
        stages = row["build"]["stages"]
        yield f"| {row['events']:,} | {' | '.join(f'{stages[name]:.1f}' for name in names)} |"


def _growth(rows: list[dict[str, Any]]) -> str:
    first, last = rows[0], rows[-1]
    larger = last["events"] / first["events"]
    longer = last["build"]["seconds"] / first["build"]["seconds"]
    return f"{larger:,.0f} times the events take the build {longer:,.1f} times as long."


def _winner(rows: list[dict[str, Any]]) -> str:
    for row in rows:
        if row["alone"]["seconds"] < row["plain"]["seconds"]:
            return f"From {row['events']:,} events on, Spark answers the three questions sooner than DuckDB."
    most = rows[-1]
    times = most["alone"]["seconds"] / most["plain"]["seconds"]
    return (
        f"On this one machine DuckDB answers the three questions sooner at every size measured, at the largest still "
        f"{times:.1f} times as fast: data that one machine holds does not need Spark to be counted. What Spark adds is "
        "the rest of the build, and machines beside the first."
    )


def _days(found: dict[str, Any]) -> Iterable[str]:
    yield "## Building one more day"
    yield ""
    second = found["days"][0]
    yield (
        f"A lake in which all days before are built gets one more of {found['events']:,} events. Bars: {DAYS_BAR:g} "
        f"times day {second['day']}, and {NO_NEWS_BAR:g} s for a build without news, which needs no Spark."
    )
    yield ""
    yield "| day | seconds | of a core | times | | without news | |"
    yield "|---:|---:|---:|---:|---|---:|---|"
    for row in found["days"]:
        times = row["seconds"] / second["seconds"]
        yield (
            f"| {row['day']} | {row['seconds']:.1f} | {row['cpu']:.1f} | {times:.2f} | {_judged(DAYS_BAR, times)} "
            f"| {row['no_news']:.2f} s | {_judged(NO_NEWS_BAR, row['no_news'])} |"
        )


def _run(found: dict[str, Any]) -> Iterable[str]:
    stages = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in found["stages"].items())
    java = max(memory["java"] for memory in found["memory"].values())
    workers = max(memory["workers"] for memory in found["memory"].values())
    yield "## A whole run"
    yield ""
    yield (
        f"A BullMQ store with {found['events']:,} events in a stream and {found['jobs']:,} jobs in another queue: "
        f"{found['seconds']:.1f} s ({stages}). {found['taken']:,} events were taken in, "
        f"{found['rows']['silver/jobs']:,} jobs and {found['rows']['silver/attempts']:,} runs are in silver. "
        f"Java at most {java:,.0f} MiB, Python workers together {workers:,.0f} MiB."
    )


def _queues(rows: list[dict[str, Any]]) -> Iterable[str]:
    yield "## Many queues"
    yield ""
    yield (
        "Stores with one job in each of very many queues. *Planned* is what the driver does before tasks can read all "
        "of them: the list of queues, their newest offsets, the partitions of events and of jobs. *Without news* is a "
        "whole ingest after one that has read everything, without Spark. Bars: "
        f"{QUEUES_BARS['planned']:g} s to plan the largest number, {QUEUES_BARS['no_news']:g} s without news."
    )
    yield ""
    yield "| store | queues | planned | | list | offsets | events | jobs | tasks | first ingest | without news | |"
    yield "|---|---:|---:|---|---:|---:|---:|---:|---:|---:|---:|---|"
    for row in rows:
        steps = " | ".join(f"{seconds:.1f} s" for seconds in row["steps"].values())
        news = row.get("no_news")
        judged = "" if news is None else _judged(QUEUES_BARS["no_news"], news)
        yield (
            f"| {TITLES[row['protocol']]} | {row['queues']:,} | {row['planned']:.1f} s "
            f"| {_judged(QUEUES_BARS['planned'], row['planned'])} | {steps} "
            f"| {row['tasks']['events']} and {row['tasks']['jobs']} "
            f"| {'' if news is None else format(row['first'], '.1f') + ' s'} "
            f"| {'' if news is None else format(news, '.1f') + ' s'} | {judged} |"
        )


def _move(rows: list[dict[str, Any]]) -> Iterable[str]:
    yield "## Moving queues"
    yield ""
    yield (
        "Jobs with priorities, every fifth due later, texts of several alphabets, and a schedule. *Verified* is the "
        "command's own comparison; *order* and *due times* were compared before and after through the ordinary API. "
        "All run in one session; the first bears Spark's cold start."
    )
    yield ""
    yield "| from | to | jobs | time | jobs/s | verified | order | due times | schedules | source | longest stages |"
    yield "|---|---|---:|---:|---:|---|---|---|---:|---|---|"
    for row in rows:
        checked = row["verified"]
        longest = sorted(row["stages"].items(), key=lambda stage: -stage[1])[:3]
        stages = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in longest)
        verified = f"{checked['equal']:,} equal" if checked["sound"] else f"**not sound** {checked}"
        yield (
            f"| {TITLES[row['from']]} | {TITLES[row['to']]} | {row['jobs']:,} | {row['seconds']:.1f} s "
            f"| {row['jobs'] / row['seconds']:,.0f} | {verified} | {_kept(row['order_kept'])} "
            f"| {_kept(row['due_kept'])} | {len(row['schedules'])} "
            f"| {'empty' if row['source_empty'] else 'not empty'} | {stages} |"
        )


def _work(rows: list[dict[str, Any]]) -> Iterable[str]:
    yield "## Workers as Spark tasks"
    yield ""
    yield (
        "Runs per second with 50 jobs at a time in each worker, from the first worker's start to the last one's end, "
        "beside one plain worker in a process of its own. *In all* has Spark's job and the publication of both tables, "
        "in a session that is there."
    )
    yield ""
    yield "| queue | handler | jobs | plain worker | one task | ratio | two tasks | ratio | in all |"
    yield "|---|---|---:|---:|---:|---:|---:|---:|---:|"
    for row in rows:
        plain, one, two = row["plain"], row["1"], row["2"]
        kind = {"no_op": "does nothing", "one_ms": "1 ms of CPU"}[row["kind"]]
        yield (
            f"| {TITLES[row['protocol']]} | {kind} | {row['jobs']:,} | {plain:,.0f}/s | {one:,.0f}/s "
            f"| {one / plain:.2f} | {two:,.0f}/s | {two / plain:.2f} | {row['2_whole']:.1f} s |"
        )


def _judged(value: float, bar: float) -> str:
    return "met" if value >= bar else "**missed**"


def _kept(kept: bool) -> str:
    return "kept" if kept else "**not kept**"


def _cores(cores: str) -> str:
    return "one core" if cores == "1" else f"{cores} cores"
