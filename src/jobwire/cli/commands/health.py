"""`jobwire health`: asks a running worker whether it is ready, for checks of containers."""

# ruff: noqa: PLC0415 - what a command works with is imported when it runs, so that --help answers at once

from __future__ import annotations

from typing import Annotated, Any

import typer

from jobwire.cli.durations import duration
from jobwire.cli.parameters import JsonLines


def health(
    addresses: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[ADDRESS]...",
            help="Where the worker listens: the value of its --listen. Several for a worker with --processes; "
            "127.0.0.1:9464 if not given.",
            show_default=False,
        ),
    ] = None,
    *,
    live: Annotated[
        bool,
        typer.Option("--live", metavar="", help="Only ask whether it is alive: its event loop runs."),
    ] = False,
    timeout: Annotated[
        float,
        typer.Option(metavar="DURATION", parser=duration, help="How long to wait for an answer.", show_default="10s"),
    ] = 10.0,
    as_json: JsonLines = False,
) -> None:
    """Ask a worker that runs with --listen whether it claims jobs and its store answers.

    The exit code is 0 if so, 1 if not, and 3 if it does not answer.
    """
    from jobwire.cli.listening import DEFAULT_PORT, Listening
    from jobwire.cli.output import emit, say
    from jobwire.errors import JobwireError

    asked = [Listening.parse(one).reachable for one in addresses or [str(DEFAULT_PORT)]]
    ill: list[str] = []
    for address in asked:
        found = _ask(f"http://{address}/{'live' if live else 'ready'}", timeout)
        if as_json:
            emit({"address": str(address), **found})
        if not found["ok"]:
            ill.append(f"{address}: {found['why']}")
    if ill:
        raise JobwireError("; ".join(ill))
    if not as_json:
        say("alive" if live else "ready")


def _ask(url: str, timeout: float) -> dict[str, Any]:
    import json
    from http.client import HTTPException
    from urllib.error import HTTPError, URLError
    from urllib.request import ProxyHandler, build_opener

    from jobwire.errors import StoreUnavailable

    opener = build_opener(ProxyHandler({}))  # the worker is on this machine
    try:
        with opener.open(url, timeout=timeout) as answer:
            body = answer.read()
    except HTTPError as refused:
        body = refused.read()
    except (URLError, OSError) as error:
        reason = getattr(error, "reason", error)
        raise StoreUnavailable(f"{url} does not answer: {reason}") from None
    except HTTPException:
        raise _not_ours(url) from None
    try:
        found = json.loads(body)
        return {"ok": bool(found["ok"]), "why": str(found["why"]), **found}
    except (ValueError, KeyError, TypeError):
        raise _not_ours(url) from None


def _not_ours(url: str) -> Exception:
    from jobwire.errors import JobwireError

    return JobwireError(f"{url} is not the endpoint of a jobwire worker")
