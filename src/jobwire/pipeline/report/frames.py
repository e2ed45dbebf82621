"""The tables that a report is made of, with the columns and kinds of values that its sections need."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import pandas as pd

from jobwire.errors import JobwireError
from jobwire.pipeline.lake.sketches import read_sketch
from jobwire.pipeline.report.wording import distinct, shorten

Frame: TypeAlias = Any
"""A pandas frame, and below a column or row of one: pandas has no types that a strict checker could follow."""
Column: TypeAlias = Any

OUTCOMES = ("completed", "failed")
"""The ends that a job can have. `failed` is for good."""

_COLUMNS = {
    "throughput_hourly": ("store queue name hour", "added started completed failed stalled retried"),
    "latency_hourly": ("store queue name hour wait_sketch run_sketch", "runs"),
    "failures_daily": ("store queue name day error_class sample_error first_at last_at", "failures jobs"),
    "workers_hourly": ("store queue worker hour", "runs busy_ms utilisation"),
    "retries": ("store queue name", "attempts jobs succeeded"),
    "quality": ("check_name store queue ok note", "value"),
    "gaps": ("store queue after before", "lost"),
    "runs": ("command started_at ended_at outcome", "rows_in rows_out"),
    "campaign_hourly": (
        "store campaign_id campaign mode hour busiest_minute",
        "sent failed attempts retries busiest_sent delivery_rate",
    ),
    "campaign_daily": ("store campaign_id campaign mode day failures", "failed"),
    "channel_health": (
        "store channel_id channel active last_success last_reason silent_since",
        "deliveries failures consecutive_errors",
    ),
}
_TIMES = {
    "hour",
    "day",
    "first_at",
    "last_at",
    "started_at",
    "ended_at",
    "busiest_minute",
    "last_success",
    "silent_since",
}
_AS_THEY_ARE = {"ok", "active"}


class Frames:
    """The tables, each by its name; one that was not given is empty.

    Numbers are floats, times aware and UTC, and `label` names a row's queue as the report does: by the queue's name
    alone, with the protocol or the store where another queue has the same name.
    """

    def __init__(self, tables: Mapping[str, Frame]) -> None:
        frames = {name: _prepared(name, tables.get(name)) for name in _COLUMNS}
        self.labels = _labels(frames)
        for frame in frames.values():
            if "queue" in frame:
                frame["label"] = [self.labels.get(key, "") for key in zip(frame["store"], frame["queue"], strict=True)]
        self.throughput = frames["throughput_hourly"]
        self.latency = frames["latency_hourly"]
        for kind in ("wait", "run"):
            bars = [read_sketch(text) for text in self.latency.pop(f"{kind}_sketch")]
            self.latency[f"{kind}_bars"] = pd.Series(bars, index=self.latency.index, dtype=object)
        self.failures = frames["failures_daily"]
        self.workers = frames["workers_hourly"]
        self.retries = frames["retries"]
        self.quality = frames["quality"]
        self.gaps = frames["gaps"]
        self.runs = frames["runs"]
        self.campaigns = frames["campaign_hourly"]
        self.campaign_days = frames["campaign_daily"]
        self.channels = frames["channel_health"]
        named = _campaign_labels(self.campaigns)
        keys = zip(self.campaigns["store"], self.campaigns["campaign_id"], strict=True)
        self.campaigns["label"] = [named[key] for key in keys]


def protocol(store: str) -> str:
    """Returns the protocol of a store that is named by its URL; the whole name of one that is not.

    >>> protocol("bullmq+redis://127.0.0.1:6379/0"), protocol("pgboss")
    ('bullmq', 'pgboss')
    """
    return store.partition("+")[0].partition(":")[0]


def _prepared(name: str, given: Frame | None) -> Frame:
    texts, numbers = (part.split() for part in _COLUMNS[name])
    wanted = [*texts, *numbers]
    if given is None:
        given = pd.DataFrame(columns=pd.Index(wanted))
    if missing := [column for column in wanted if column not in given]:
        raise JobwireError(f"the table {name} has no column {', '.join(missing)}: it has {', '.join(given.columns)}")
    frame = given[wanted].reset_index(drop=True).copy()
    for column in wanted:
        if column in numbers:
            frame[column] = frame[column].astype("float64")
        elif column in _TIMES:
            frame[column] = pd.to_datetime(frame[column], utc=True)
        elif column not in _AS_THEY_ARE:
            frame[column] = [_text(value) for value in frame[column]]
    return frame


def _text(value: Any) -> str:
    return "" if pd.isna(value) else str(value)


def _labels(frames: Mapping[str, Frame]) -> dict[tuple[str, str], str]:
    keys = sorted(
        {
            (str(store), str(queue))
            for frame in frames.values()
            if "queue" in frame
            for store, queue in zip(frame["store"], frame["queue"], strict=True)
            if queue
        }
    )
    queues = [queue for _, queue in keys]
    kinds = [(protocol(store), queue) for store, queue in keys]
    texts: list[str] = []
    for (store, queue), kind in zip(keys, kinds, strict=True):
        where = (
            ""
            if queues.count(queue) == 1
            else kind[0]
            if kinds.count(kind) == 1
            else shorten(store.partition("://")[2] or store, 28)
        )
        texts.append(shorten(queue, 28) + (f" ({where})" if where else ""))
    return dict(zip(keys, distinct(texts), strict=True))


def _campaign_labels(hours: Frame) -> dict[tuple[str, str], str]:
    """Returns a name for each campaign. Those in TEST mode are marked: their messages reached no channel."""
    newest = hours.sort_values("hour", kind="stable").groupby(["store", "campaign_id"]).last()
    texts = [
        shorten(name or campaign_id, 28) + (" (TEST)" if mode == "TEST" else "")
        for (_, campaign_id), name, mode in zip(newest.index, newest["campaign"], newest["mode"], strict=True)
    ]
    return dict(zip(newest.index, distinct(texts), strict=True))
