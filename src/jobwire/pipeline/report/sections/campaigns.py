"""Messages of campaigns: how many were sent, against the rates, why others failed, and which channels went silent."""

from __future__ import annotations

import json
from collections import Counter
from datetime import timedelta
from functools import partial

import pandas as pd

from jobwire.look.palette import OUTCOME
from jobwire.pipeline.report.charts import HALF, WIDE, bars, stacked_bars, stacked_over_time
from jobwire.pipeline.report.frames import Frame, Frames
from jobwire.pipeline.report.parts import Cell, Chart, Grid, Section
from jobwire.pipeline.report.period import Period
from jobwire.pipeline.report.wording import count, day, distinct, duration, moment, plural, share, shorten

_PARTS = {"sent": OUTCOME["completed"], "failed": OUTCOME["failed"]}
_ALLOWED = "allowed by the rates"
_REASONS = 8
_CAMPAIGNS = 10
_CHANNELS = 10


def campaigns(frames: Frames, period: Period) -> Section | None:
    """Returns messages by hour, failures by reason and silent channels, or None if no campaigns' database was
    ingested."""
    hours = frames.campaigns
    silent, before = _silent(frames.channels, period)
    if hours.empty and frames.channels.empty:
        return None
    if hours.empty:
        finding = "No message of a campaign was sent in this period" + _went_silent(silent)
        return Section("campaigns", "Campaigns", finding, _silent_before(before), grids=_silent_grid(silent, period))
    totals = _totals(hours)
    reasons = _reasons(frames.campaign_days)
    charts = [] if period.momentary else [_course(hours, period)]
    charts += [_busiest(totals, HALF if reasons else WIDE)]
    if reasons:
        charts.append(_by_reason(reasons))
    grids = [_campaign_grid(totals), *_silent_grid(silent, period)]
    finding = _finding(totals, reasons) + _went_silent(silent)
    text = " ".join(part for part in (_against_the_rate(totals), _silent_before(before)) if part)
    return Section("campaigns", "Campaigns", finding, text, charts, grids)


def _totals(hours: Frame) -> Frame:
    """Returns the figures of each campaign, those with most messages first."""
    totals = hours.groupby("label")[["sent", "failed", "attempts", "retries"]].sum()
    totals = totals.join(hours.groupby("label")[["delivery_rate"]].max())
    peaks = hours.sort_values(["busiest_sent", "hour"], ascending=[False, True], kind="stable").groupby("label").first()
    totals = totals.join(peaks[["busiest_minute", "busiest_sent"]])
    totals["of_rate"] = (totals["busiest_sent"] / totals["delivery_rate"].where(totals["delivery_rate"] > 0)).fillna(0)
    totals["work"] = totals["sent"] + totals["failed"]
    return totals.sort_values("work", ascending=False, kind="stable").reset_index()


def _reasons(days: Frame) -> Counter[str]:
    found: Counter[str] = Counter()
    for text in days["failures"]:
        found.update(json.loads(text) if text else {})
    return found


def _silent(channels: Frame, period: Period) -> tuple[Frame, int]:
    """Returns the channels that went silent in the period, the newest silence first, and the number of those that were
    silent before it."""
    since = channels["silent_since"]
    before = since.notna() & (since < pd.Timestamp(period.start))
    during = since.notna() & ~before & (since < pd.Timestamp(period.end))
    newest = channels[during].sort_values(["silent_since", "channel"], ascending=[False, True], kind="stable")
    return newest, int(before.sum())


def _finding(totals: Frame, reasons: Counter[str]) -> str:
    sent, failed = totals["sent"].sum(), totals["failed"].sum()
    of = f"of {plural(len(totals), 'campaign')}" if len(totals) > 1 else f"of {totals['label'].iloc[0]}"
    if not failed:
        return f"All {plural(sent, 'message')} {of} were sent" if sent != 1 else f"The one message {of} was sent"
    main = ""
    if reasons:
        [(reason, _)] = reasons.most_common(1)
        main = f", {'all' if len(reasons) == 1 else 'mainly'} {shorten(reason, 36)}"
    if not sent:
        return f"None of {plural(failed, 'message')} {of} was sent{main}"
    verb = "was" if sent == 1 else "were"
    return f"{plural(sent, 'message')} {of} {verb} sent and {share(failed, sent + failed)} failed{main}"


def _went_silent(silent: Frame) -> str:
    if silent.empty:
        return ""
    return f"; {plural(len(silent), 'channel')} went silent"


def _silent_before(number: int) -> str:
    return f"{plural(number, 'channel')} {'was' if number == 1 else 'were'} silent already." if number else ""


def _against_the_rate(totals: Frame) -> str:
    """Returns whether a campaign sent more than its rate allows, and what retries cost."""
    over = totals[totals["of_rate"] > 1]
    fastest = totals.loc[totals["of_rate"].idxmax()]
    text = ""
    if fastest["of_rate"] > 0:
        sent, rate = plural(fastest["busiest_sent"], "message"), count(fastest["delivery_rate"])
        if over.empty:
            nearest = f"nearest was {fastest['label']} with {sent} in its busiest minute, of {rate}"
            text = f"No campaign exceeded its rate; {nearest}."
        else:
            when = moment(fastest["busiest_minute"])
            text = f"{fastest['label']} exceeded its rate: {sent} in the minute of {when}, where {rate} are allowed."
    if len(over) > 1:
        text += f" So did {plural(len(over) - 1, 'other campaign')}."
    retried, attempts = totals["retries"].sum(), totals["attempts"].sum()
    if retried:
        verb = "was a retry" if retried == 1 else "were retries"
        text += f" {count(retried)} of {plural(attempts, 'attempt')} {verb}."
    return text.strip()


def _course(hours: Frame, period: Period) -> Chart:
    """Returns messages over time, and what the rates of the campaigns that sent any then allow."""
    at = hours["hour"].dt.floor("h" if period.grain == "hour" else "D").rename("at")
    allowed = hours.assign(**{_ALLOWED: hours["delivery_rate"].fillna(0) * 60})
    course = allowed.groupby(at)[["sent", "failed", _ALLOWED]].sum().reindex(period.buckets(), fill_value=0)
    drawing = partial(
        stacked_over_time,
        course.rename_axis("at").reset_index(),
        _PARTS,
        period.step,
        unit=f"messages per {period.grain}",
        line=_ALLOWED,
    )
    return Chart("campaigns", f"Messages per {period.grain}, and what the rates of the campaigns allow", drawing)


def _busiest(totals: Frame, width: int) -> Chart:
    rows = totals.head(_CAMPAIGNS).copy()
    rows["value"] = 100 * rows["of_rate"]
    rows["text"] = [
        f"{count(sent)} of {count(rate)}" if rate > 0 else count(sent)
        for sent, rate in zip(rows["busiest_sent"], rows["delivery_rate"], strict=True)
    ]
    drawing = partial(bars, rows, OUTCOME["completed"], percent=False, unit="per cent of the delivery rate")
    caption = "The busiest minute of each campaign, of what its rate allows"
    return Chart("campaigns-rate", caption, drawing, span=3 if width == HALF else 6)


def _by_reason(reasons: Counter[str]) -> Chart:
    ranked = reasons.most_common()
    names = distinct([shorten(name, 26) for name, _ in ranked])
    rows = pd.DataFrame({"label": names, "failed": [float(number) for _, number in ranked]})
    if len(rows) > _REASONS:
        rest = rows.iloc[_REASONS - 1 :]
        others = {"label": f"{len(rest)} other reasons", "failed": rest["failed"].sum()}
        rows = pd.concat([rows.iloc[: _REASONS - 1], pd.DataFrame([others])], ignore_index=True)
    rows["text"] = [f"{count(value)} · {share(value, reasons.total())}" for value in rows["failed"]]
    drawing = partial(stacked_bars, rows, {"failed": OUTCOME["failed"]}, unit="failed messages")
    return Chart("campaigns-failures", "Failed messages by reason", drawing, span=3)


def _campaign_grid(totals: Frame) -> Grid:
    rows = [
        [
            row["label"],
            count(row["sent"]),
            count(row["failed"]),
            share(row["failed"], row["work"]),
            count(row["retries"]),
            count(row["busiest_sent"]),
            "–" if pd.isna(row["delivery_rate"]) else count(row["delivery_rate"]),
        ]
        for row in totals.head(_CAMPAIGNS).to_dict("records")
    ]
    more = f", the largest {_CAMPAIGNS} of {len(totals)}" if len(totals) > _CAMPAIGNS else ""
    figures = ("sent", "failed", "share failed", "retries", "busiest minute", "rate per minute")
    return Grid(f"The campaigns{more}", ("campaign", *figures), rows, frozenset(figures))


def _silent_grid(silent: Frame, period: Period) -> list[Grid]:
    if silent.empty:
        return []
    rows: list[list[str | Cell]] = []
    for row in silent.head(_CHANNELS).to_dict("records"):
        since, last = row["silent_since"], row["last_success"]
        lasting = duration((pd.Timestamp(period.end) - since) / timedelta(milliseconds=1))
        rows.append(
            [
                shorten(row["channel"] or row["channel_id"], 34),
                Cell(f"{moment(since)}, {lasting}", "steady"),
                Cell("never" if pd.isna(last) else day(last), "steady"),
                f"{count(row['failures'])} of {count(row['deliveries'])}",
                "–" if pd.isna(row["consecutive_errors"]) else count(row["consecutive_errors"]),
                _active(row["active"]),
                Cell(shorten(row["last_reason"], 40) if row["last_reason"] else "", "quiet steady"),
            ]
        )
    more = f", the newest {_CHANNELS} of {len(silent)}" if len(silent) > _CHANNELS else ""
    columns = ("channel", "silent since (UTC)", "last success", "failed", "errors in a row", "", "last reason")
    return [Grid(f"Channels that went silent{more}", columns, rows, frozenset({"failed", "errors in a row"}))]


def _active(active: bool | None) -> Cell:
    if active is None or pd.isna(active):
        return Cell("deleted", "quiet steady")
    return Cell("active", "good steady") if active else Cell("inactive", "bad steady")
