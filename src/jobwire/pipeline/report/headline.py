"""The report's first lines: five figures, and every queue in one row of a table."""

from __future__ import annotations

from jobwire.pipeline.report.frames import Frame, Frames, protocol
from jobwire.pipeline.report.palette import PROTOCOL
from jobwire.pipeline.report.parts import Cell, Figure, Grid
from jobwire.pipeline.report.percentiles import overall, pooled
from jobwire.pipeline.report.wording import count, duration, plural, share, shorten

_QUEUES = 15


def headline(frames: Frames) -> list[Figure]:
    """Returns the five figures for a reader in a hurry."""
    table = frames.throughput
    added, completed, failed = (float(table[column].sum()) for column in ("added", "completed", "failed"))
    waits = overall(frames.latency, "wait")
    work = table.assign(work=table["completed"] + table["failed"]).groupby("label")["work"].sum()
    busiest = str(work.idxmax()) if work.sum() else "–"
    queues, stores = len(frames.labels), len({store for store, _ in frames.labels})
    return [
        Figure("jobs added", count(added), f"{plural(queues, 'queue')} in {plural(stores, 'store')}"),
        Figure("jobs completed", count(completed), f"{share(completed, completed + failed)} of those that ended"),
        Figure("jobs failed", share(failed, completed + failed), f"{plural(failed, 'job')} failed for good"),
        Figure(
            "p95 wait",
            "–" if waits is None else duration(waits["p95"]),
            "no run has a known wait"
            if waits is None
            else f"half of the jobs waited less than {duration(waits['p50'])}",
        ),
        Figure(
            "busiest queue", busiest, f"{share(work.max(), work.sum())} of all jobs" if work.sum() else "no job ended"
        ),
    ]


def queues_at_a_glance(frames: Frames) -> Grid | None:
    """Returns a row for each queue, the busiest first, or None if nothing happened."""
    table = frames.throughput.groupby(["store", "label"])[["added", "completed", "failed", "retried"]].sum()
    if table.empty:
        return None
    table = table.sort_values(["completed", "added"], ascending=False, kind="stable").reset_index()
    waits, runs = (pooled(frames.latency, ["label"], kind).set_index("label") for kind in ("wait", "run"))
    rows: list[list[str | Cell]] = []
    for row in table.head(_QUEUES).to_dict("records"):
        ended = row["completed"] + row["failed"]
        name = protocol(row["store"])
        rows.append(
            [
                row["label"],
                Cell(shorten(name, 24), f"protocol {name}" if name in PROTOCOL else ""),
                *(count(row[column]) for column in ("added", "completed")),
                share(row["failed"], ended),
                count(row["retried"]),
                *(_level(waits, row["label"], level) for level in ("p50", "p95")),
                *(_level(runs, row["label"], level) for level in ("p50", "p95")),
            ]
        )
    figures = ("added", "completed", "failed", "retries", "wait p50", "wait p95", "run p50", "run p95")
    caption = "The queues" + (f", the busiest {_QUEUES} of {len(table)}" if len(table) > _QUEUES else "")
    return Grid(caption, ("queue", "protocol", *figures), rows, frozenset(figures), "queue")


def _level(figures: Frame, label: str, level: str) -> str:
    return duration(float(figures[level][label])) if label in figures.index else "–"
