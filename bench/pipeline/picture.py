"""The results as one picture: what Spark costs a reader, how a build grows, and how fast queues move."""

from __future__ import annotations

from typing import Any

import altair as alt
import pandas as pd
import vl_convert
from bench.pipeline.summary import DAYS_BAR, QUEUES_BARS, TITLES

INK, GRID = "#1d2733", "#e3e7ec"
WAYS = {"build": "#3b76af", "Spark, three tables": "#a5c8e1", "DuckDB, three tables": "#edae49"}
CORES = {"1 core": "#a5c8e1", "2 cores": "#3b76af"}
WIDTH = 520


def draw(results: dict[str, Any]) -> str:
    """Charts of the parts that were measured, one below the other."""
    drawn: list[Any] = []
    if "read" in results:
        drawn.append(_reading(results["read"]["found"]))
    if "build" in results:
        drawn += [_growth(results["build"]["found"]), _memory(results["build"]["found"])]
    if "days" in results:
        drawn.append(_days(results["days"]["found"]))
    if "queues" in results:
        drawn.append(_queues(results["queues"]["found"]))
    if "move" in results:
        drawn.append(_moves(results["move"]["found"]))
    spec = alt.vconcat(*drawn, spacing=36).resolve_scale(color="independent").to_dict()
    spec["config"] = {
        "background": "#ffffff",
        "font": "Arial, 'Liberation Sans', sans-serif",
        "view": {"stroke": None},
        "axis": {"gridColor": GRID, "labelColor": INK, "titleColor": INK, "domain": False, "ticks": False},
        "title": {"anchor": "start", "color": INK, "fontSize": 15, "subtitleColor": "#5b6776", "offset": 12},
    }
    newest = max(vl_convert.get_vegalite_versions(), key=lambda text: [int(part) for part in text.split(".")])
    return str(vl_convert.vegalite_to_svg(spec, vl_version=newest)) + "\n"


def _reading(found: dict[str, Any]) -> Any:
    rows = pd.DataFrame(
        {"store": TITLES[protocol], "cores": f"{cores} core{'s' * (cores != '1')}", "ratio": row["ratio_rows"]}
        for cores, of_cores in found.items()
        for protocol, row in of_cores["table"].items()
    )
    bars = (
        alt.Chart(rows)
        .mark_bar(size=12)
        .encode(
            y=alt.Y("store:N", title=None, sort=list(TITLES.values())),
            yOffset=alt.YOffset("cores:N"),
            x=alt.X("ratio:Q", title="rows per second through Spark / without Spark"),
            color=alt.Color("cores:N", title=None, scale=alt.Scale(domain=list(CORES), range=list(CORES.values()))),
        )
    )
    bar = alt.Chart(pd.DataFrame({"bar": [0.8]})).mark_rule(color="#d1495b", strokeDash=[4, 3]).encode(x="bar:Q")
    title = alt.TitleParams("Reading jobs through Spark", subtitle="Dashed: the bar of 0.8 for Redis and MongoDB")
    return (bars + bar).properties(width=WIDTH, height=190, title=title)


def _growth(found: list[dict[str, Any]]) -> Any:
    rows = pd.DataFrame(
        {"events": row["events"], "way": way, "seconds": row[key]["seconds"]}
        for row in found
        for way, key in zip(WAYS, ("build", "alone", "plain"), strict=True)
    )
    lines = (
        alt.Chart(rows)
        .mark_line(point=True)
        .encode(
            x=alt.X("events:Q", title="events", scale=alt.Scale(type="log"), axis=alt.Axis(format="~s", tickCount=3)),
            y=alt.Y("seconds:Q", title="seconds", scale=alt.Scale(type="log"), axis=alt.Axis(format="~g", tickCount=4)),
            color=alt.Color("way:N", title=None, scale=alt.Scale(domain=list(WAYS), range=list(WAYS.values()))),
        )
    )
    return lines.properties(width=WIDTH, height=230, title="Building from more and more events")


def _memory(found: list[dict[str, Any]]) -> Any:
    kinds = {"Spark's Java": "#3b76af", "DuckDB": "#edae49"}
    rows = pd.DataFrame(
        {"events": f"{row['events']:,}", "order": number, "process": process, "mib": mib}
        for number, row in enumerate(found)
        for process, mib in zip(kinds, (row["build"]["memory"]["java"], row["plain"]["memory"]), strict=True)
    )
    bars = (
        alt.Chart(rows)
        .mark_bar(size=12)
        .encode(
            y=alt.Y("events:N", title="events", sort=alt.SortField("order")),
            yOffset=alt.YOffset("process:N", sort=list(kinds)),
            x=alt.X("mib:Q", title="largest resident memory, MiB"),
            color=alt.Color("process:N", title=None, scale=alt.Scale(domain=list(kinds), range=list(kinds.values()))),
        )
    )
    return bars.properties(width=WIDTH, height=36 * len(found) + 20, title="Memory of a build")


def _days(found: dict[str, Any]) -> Any:
    rows = pd.DataFrame(
        {"day": f"day {row['day']}", "order": row["day"], "seconds": row["seconds"], "shown": f"{row['seconds']:.1f} s"}
        for row in found["days"]
    )
    chart = alt.Chart(rows).encode(
        y=alt.Y("day:N", title=None, sort=alt.SortField("order")), x=alt.X("seconds:Q", title="seconds")
    )
    bars = chart.mark_bar(size=16, color="#3b76af") + chart.mark_text(align="left", dx=5, color=INK).encode(
        text="shown:N"
    )
    most = pd.DataFrame({"bar": [DAYS_BAR * found["days"][0]["seconds"]]})
    bar = alt.Chart(most).mark_rule(color="#d1495b", strokeDash=[4, 3]).encode(x="bar:Q")
    title = alt.TitleParams(
        f"Building one more day of {found['events']:,} events",
        subtitle=f"Dashed: the bar, {DAYS_BAR:g} times the second day",
    )
    return (bars + bar).properties(width=WIDTH, height=32 * len(rows) + 10, title=title)


def _queues(found: list[dict[str, Any]]) -> Any:
    most = max(row["queues"] for row in found)
    rows = pd.DataFrame(
        {"store": TITLES[row["protocol"]], "seconds": row["planned"], "shown": f"{row['planned']:.1f} s"}
        for row in found
        if row["queues"] == most
    )
    chart = alt.Chart(rows).encode(
        y=alt.Y("store:N", title=None, sort=None), x=alt.X("seconds:Q", title="seconds to plan a read of all of them")
    )
    both = chart.mark_bar(size=16, color="#3b76af") + chart.mark_text(align="left", dx=5, color=INK).encode(
        text="shown:N"
    )
    title = alt.TitleParams(f"A store with {most:,} queues", subtitle=f"The bar is {QUEUES_BARS['planned']:g} s")
    return both.properties(width=WIDTH, height=130, title=title)


def _moves(found: list[dict[str, Any]]) -> Any:
    rows = pd.DataFrame(
        {
            "pair": f"{TITLES[row['from']]} to {TITLES[row['to']]}",
            "rate": row["jobs"] / row["seconds"],
            "shown": f"{row['jobs'] / row['seconds']:,.0f}/s",
        }
        for row in found
    )
    chart = alt.Chart(rows).encode(
        y=alt.Y("pair:N", title=None, sort=None), x=alt.X("rate:Q", title="jobs per second, verification included")
    )
    both = chart.mark_bar(size=16, color="#3b76af") + chart.mark_text(align="left", dx=5, color=INK).encode(
        text="shown:N"
    )
    return both.properties(width=WIDTH, height=130, title=f"Moving {found[0]['jobs']:,} jobs from store to store")
