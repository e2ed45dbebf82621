"""Findings about a store as lines for people, and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from jobwire.cli.output import console, printable
from jobwire.counted import counted
from jobwire.doctor import Examination, Finding, Fixed, Severity

_STYLES = {Severity.CRITICAL: "bold red", Severity.WARNING: "bold yellow", Severity.NOTE: "cyan"}
_LABEL = 9


def record(seen: Examination, finding: Finding) -> dict[str, Any]:
    """Returns a finding as JSON values."""
    return {
        "store": seen.where,
        "code": finding.code,
        "severity": finding.severity.value,
        "queue": finding.queue,
        "title": finding.title,
        "evidence": finding.evidence,
        "risk": finding.risk,
        "remedy": finding.remedy,
        "fixable": finding.fixable,
    }


def show(seen: Examination, *, apart: bool = False, nothing_to_fix: bool = False) -> None:
    """Prints the findings about a store, trouble first, or one line if there are none."""
    out = console()
    where, server = printable(seen.where), printable(seen.server)
    looked = [*seen.checks, counted(len(seen.queues), "queue")]
    about = f"Looked at {', '.join(looked[:-1])} and {looked[-1]}." if len(looked) > 1 else f"Looked at {looked[0]}."
    if apart:
        out.print()
    if not seen.findings:
        named = f" ({server})" if server else ""
        out.print(Text.assemble(("✓ ", "green"), (where, "bold"), f"{named} is healthy. ", (about, "dim")))
        return
    out.print(Text.assemble((where, "bold"), (f"  {server}", "dim")))
    for finding in seen.findings:
        out.print()
        _print(out, finding)
    out.print()
    out.print(_summary(seen, nothing_to_fix).append(about, "dim"))


def show_plan(where: str, fixable: Sequence[Finding], *, apart: bool = False) -> None:
    """Prints what will be done about findings, each with its evidence."""
    out = console()
    if apart:
        out.print()
    out.print(Text.assemble((printable(where), "bold"), "  to fix:"))
    for one in fixable:
        out.print(Text.assemble("• ", printable(one.fix), (f"  ({printable(one.evidence)})", "dim")))


def show_fixed(fixed: Sequence[Fixed]) -> None:
    """Prints what was done about findings."""
    for one in fixed:
        mark = Text("✓ ", "green") if one.done else Text("✗ ", "bold red")
        console().print(Text.assemble(mark, printable(one.detail)))


def _print(out: Console, finding: Finding) -> None:
    """Prints three or four lines: the title, the evidence, the risk and the remedy. At a terminal, long ones are
    wrapped beside their label."""
    title = Text(f"{finding.title[:1].upper()}{finding.title[1:]}", "bold")
    title.append(f" · {printable(finding.queue)}" if finding.queue else "", "bold cyan")
    title.append(f" · {finding.code}", "dim not bold")
    lines = [
        (Text(finding.severity.value, _STYLES[finding.severity]), title),
        (Text("evidence", "dim"), Text(printable(finding.evidence))),
        (Text("risk", "dim"), Text(printable(finding.risk))),
        (Text("remedy", "dim"), Text(printable(finding.remedy), "green")),
    ]
    if not finding.troubling:
        del lines[2]
    if not out.is_terminal:
        for label, text in lines:
            out.print(f"{label.plain:<{_LABEL}} {text.plain}", markup=False)
        return
    table = Table.grid(padding=(0, 1, 0, 0))
    table.add_column(width=_LABEL, no_wrap=True)
    table.add_column(overflow="fold")
    for label, text in lines:
        table.add_row(label, text)
    out.print(table)


def _summary(seen: Examination, nothing_to_fix: bool) -> Text:
    numbers = {severity: sum(one.severity is severity for one in seen.findings) for severity in Severity}
    if seen.healthy:
        notes = counted(numbers[Severity.NOTE], "note")
        return Text.assemble(("✓ ", "green"), ("Healthy", "bold"), f", with {notes}. ")
    counts = [
        Text(f"{number:,} critical" if severity is Severity.CRITICAL else counted(number, severity.value), style)
        for (severity, style), number in zip(_STYLES.items(), numbers.values(), strict=True)
        if number
    ]
    line = Text("✗ ", "bold red").append_text(Text(", ").join(counts)).append(". ")
    fixable = sum(one.fixable for one in seen.findings)
    if fixable:
        line.append(f"--fix can fix {fixable} of them. ")
    elif nothing_to_fix:
        line.append("--fix can fix none of them. ")
    return line
