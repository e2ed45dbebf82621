"""Shows what further attempts achieved."""

from __future__ import annotations

from functools import partial

from jobwire.look.palette import OUTCOME
from jobwire.pipeline.report.charts import bars, stacked_bars
from jobwire.pipeline.report.forgotten import forgotten_runs, queues_that_forget
from jobwire.pipeline.report.frames import Frame, Frames
from jobwire.pipeline.report.parts import Chart, Section
from jobwire.pipeline.report.period import Period
from jobwire.pipeline.report.wording import count, plural, share

_MOST = 6
_QUEUES = 10


def retries(frames: Frames, period: Period) -> Section:
    """Returns jobs by the number of runs that they needed, and the share that succeeded after the first run."""
    table = frames.retries[frames.retries["jobs"] > 0]
    again = table[table["attempts"] > 1]
    if table.empty:
        return Section("retries", "Retries", "No job has ended, so none was retried")
    if again.empty:
        return Section(
            "retries", "Retries", f"No job needed a second run: all {plural(table['jobs'].sum(), 'job')} took one."
        )
    charts = [_by_attempts(again)]
    queues = again.groupby("label")[["jobs", "succeeded"]].sum()
    charts.append(_by_queue(queues))
    return Section(
        "retries", "Retries", _finding(again, queues), _spread(table, again) + _known_by_number(frames), charts
    )


def _finding(again: Frame, queues: Frame) -> str:
    saved, tried = again["succeeded"].sum(), again["jobs"].sum()
    if not saved:
        return f"Retries bought nothing: none of {plural(tried, 'retried job')} succeeded"
    finding = f"Retries saved {plural(saved, 'job')}: {share(saved, tried)} of those tried again succeeded"
    rates = queues["succeeded"] / queues["jobs"]
    weighty = rates[queues["jobs"] >= max(5, 0.02 * tried)]
    if len(weighty) > 1 and weighty.min() < 0.6 * saved / tried:
        finding += f", but only {share(weighty.min(), 1)} in {weighty.idxmin()}"
    return finding


def _spread(table: Frame, again: Frame) -> str:
    first = table["jobs"].sum() - again["jobs"].sum()
    extra = (again["jobs"] * (again["attempts"] - 1)).sum()
    at_second = again.loc[again["attempts"] == 2, "succeeded"].sum()
    text = f"{share(first, table['jobs'].sum())} of jobs took one run; the others cost {plural(extra, 'extra run')}."
    if again["succeeded"].sum():
        text += f" Of the jobs saved, {share(at_second, again['succeeded'].sum())} needed only a second run."
    return text


def _known_by_number(frames: Frames) -> str:
    forgotten = forgotten_runs(frames)
    if not forgotten:
        return ""
    runs = f"{plural(forgotten, 'run')} of {queues_that_forget(frames)}"
    return f" Jobs count their runs themselves: of {runs}, nothing else is known."


def _by_attempts(again: Frame) -> Chart:
    capped = again["attempts"].clip(upper=_MOST)
    rows = again.groupby(capped)[["jobs", "succeeded"]].sum()
    rows["failed"] = (rows["jobs"] - rows["succeeded"]).clip(lower=0)
    beyond = again["attempts"].max() > _MOST
    rows["label"] = [f"{int(n)}{' or more' if beyond and n == _MOST else ''} runs" for n in rows.index]
    rows = rows.rename(columns={"succeeded": "completed"})
    rows["text"] = [
        f"{count(done)} of {count(jobs)}" for done, jobs in zip(rows["completed"], rows["jobs"], strict=True)
    ]
    parts = {"completed": OUTCOME["completed"], "failed": OUTCOME["failed"]}
    drawing = partial(stacked_bars, rows, parts, unit="jobs")
    return Chart("retries", "Jobs that were retried, by runs they took", drawing, span=3)


def _by_queue(queues: Frame) -> Chart:
    rows = queues.sort_values("jobs", ascending=False, kind="stable").head(_QUEUES)
    rows["value"] = 100 * rows["succeeded"] / rows["jobs"]
    rows = rows.sort_values("value", ascending=False, kind="stable").reset_index()
    rows["text"] = [
        f"{share(done, jobs)} of {count(jobs)}" for done, jobs in zip(rows["succeeded"], rows["jobs"], strict=True)
    ]
    unit = "retried jobs that succeeded in the end"
    drawing = partial(bars, rows, OUTCOME["completed"], percent=True, unit=unit)
    return Chart("retries-queues", "What retries brought home, by queue", drawing, span=3)
