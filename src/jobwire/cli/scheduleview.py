"""A schedule as JSON values, and as lines for people."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.text import Text

from jobwire.cli.output import compact, printable
from jobwire.look.words import ago, spoken
from jobwire.model import Schedule
from jobwire.next_runs import next_runs


def rule(schedule: Schedule) -> str:
    """Returns the rule in words: `every 15 min`, `0 3 * * * Europe/Berlin`."""
    if schedule.every is not None:
        return f"every {spoken(schedule.every)}"
    return f"{printable(schedule.cron or '')} {printable(schedule.tz or 'UTC')}"


def record(schedule: Schedule) -> dict[str, Any]:
    """Returns the schedule as JSON values."""
    return {
        "key": schedule.key,
        "queue": schedule.queue,
        "name": schedule.name,
        "every": schedule.every,
        "cron": schedule.cron,
        "tz": schedule.tz,
        "data": schedule.data,
        "runs": schedule.runs,
        "limit": schedule.limit,
        "start_at": schedule.start_at.isoformat() if schedule.start_at else None,
        "end_at": schedule.end_at.isoformat() if schedule.end_at else None,
        "next_runs": [time.isoformat() for time in next_runs(schedule)],
    }


def show(console: Console, schedule: Schedule) -> None:
    """Prints the schedule and its next runs."""
    what = "" if schedule.name == schedule.queue else f" ({printable(schedule.name)})"
    key = printable(schedule.key) or "''"  # as it is written on a command line
    title = Text.assemble((key, "bold"), f"  {printable(schedule.queue)}{what}  {rule(schedule)}")
    console.print(title)
    if schedule.data not in (None, {}):
        console.print(Text(f"  data {compact(schedule.data)}"), overflow="ellipsis", no_wrap=True)
    times = next_runs(schedule)
    for time in times:
        console.print(Text(f"  {time:%a %Y-%m-%d %H:%M:%S %Z}  ({ago(time)})", style="dim"))
    if not times:
        console.print(Text("  no further runs are known", style="dim"))
