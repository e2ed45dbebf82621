"""`jobwire doctor`: settings and data of stores that lose or delay jobs."""

# ruff: noqa: PLC0415 - what a command works with is imported when it runs, so that --help answers at once

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from jobwire.cli.parameters import JsonLines, StoreName, Url, Yes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jobwire.doctor import Examination, Finding, Fixed


def doctor(
    urls: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="URL",
            help="URLs of stores to look at. Without them, the store that other commands use.",
            show_default=False,
        ),
    ] = None,
    *,
    fix: Annotated[
        bool, typer.Option("--fix", metavar="", help="Fix what is safe to fix, after asking.", show_default=False)
    ] = False,
    yes: Yes = False,
    url: Url = None,
    store: StoreName = None,
    as_json: JsonLines = False,
) -> None:
    """Look at stores for settings and data that lose or delay jobs. Changes nothing without --fix.

    The exit code is 1 if there is anything worse than notes, 3 if a store can't be reached, and 2 if a URL is wrong.
    """
    from jobwire.cli.exit_codes import REFUSED, UNREACHABLE, USAGE, WrongUsage, code_of
    from jobwire.cli.output import complain
    from jobwire.cli.profiles import located, understood
    from jobwire.errors import StoreUnavailable

    if urls and (url is not None or store is not None):
        raise WrongUsage("give URLs as arguments, or one store by --url or --store, not both")
    wanted: Sequence[str | None] = urls or [located(url, store)]
    codes: set[int] = set()
    for number, one in enumerate(wanted):
        try:
            understood(one)
        except WrongUsage as error:
            if len(wanted) == 1:
                raise
            complain(str(error))
            codes.add(USAGE)
            continue
        try:
            sound = _visit(one, fix=fix, yes=yes, as_json=as_json, apart=number > 0)
            codes.add(0 if sound else REFUSED)
        except (StoreUnavailable, WrongUsage) as error:
            if len(wanted) == 1:
                raise
            complain(str(error))
            codes.add(code_of(error))
    raise typer.Exit(next(code for code in (USAGE, UNREACHABLE, REFUSED, 0) if code in codes))


def _visit(url: str | None, *, fix: bool, yes: bool, as_json: bool, apart: bool) -> bool:
    """Looks at one store, shows the findings, and fixes them if asked to. Returns True if it is healthy in the end."""
    from jobwire.cli.findingview import record, show, show_fixed, show_plan
    from jobwire.cli.output import emit

    seen = _examine(url)
    if fix and (fixable := [finding for finding in seen.findings if finding.fixable]):
        if not as_json:
            show_plan(seen.where, fixable, apart=apart)
        fixed = _fix(url, fixable, yes=yes)
        if as_json:
            for one in fixed:
                emit({**record(seen, one.finding), "fixed": one.done, "detail": one.detail})
        else:
            show_fixed(fixed)
        seen, apart = _examine(url), True
    if as_json:
        for finding in seen.findings:
            emit(record(seen, finding))
    else:
        show(seen, apart=apart, nothing_to_fix=fix)
    return seen.healthy


def _examine(url: str | None) -> Examination:
    import asyncio

    from jobwire.cli.session import store_at, tell_where
    from jobwire.doctor import examine

    connection = store_at(url)
    tell_where(connection)
    return asyncio.run(examine(connection))


def _fix(url: str | None, findings: Sequence[Finding], *, yes: bool) -> Sequence[Fixed]:
    import asyncio

    from jobwire.cli.confirm import confirm
    from jobwire.connection import connect
    from jobwire.doctor import fix

    confirm("; ".join(finding.fix for finding in findings), yes=yes)
    return asyncio.run(fix(connect(url), findings))
