"""`jobwire flow`: a job and the jobs that it waits for, as a tree."""

# ruff: noqa: PLC0415 - what a command works with is imported when it runs, so that --help answers at once

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from jobwire.cli.parameters import JobId, Json, QueueName, StoreName, Url

if TYPE_CHECKING:
    from rich.text import Text
    from rich.tree import Tree

    from jobwire.connection import Connection
    from jobwire.model import Job, JobTree


def flow(
    queue: QueueName,
    job_id: JobId,
    *,
    depth: Annotated[int, typer.Option(metavar="N", min=1, help="At most so many levels.")] = 10,
    width: Annotated[
        int, typer.Option(metavar="N", min=1, help="Of each job at most so many pending and finished children.")
    ] = 100,
    url: Url = None,
    store: StoreName = None,
    as_json: Json = False,
) -> None:
    """Show a job with its children, their children and so on, as a tree."""
    from jobwire.cli.output import console, emit
    from jobwire.cli.profiles import located
    from jobwire.cli.session import ask_store, require_queue
    from jobwire.flow import Flow

    async def question(connection: Connection) -> JobTree:
        flows = Flow(connection)
        await require_queue(connection, queue)
        return await flows.get(queue, job_id, depth=depth, width=width)

    found = ask_store(located(url, store), question)
    if as_json:
        emit(_record(found))
    else:
        console().print(_tree(found))


def _record(tree: JobTree) -> dict[str, Any]:
    from jobwire.cli.jobview import record

    return {**record(tree.job), "children": [_record(child) for child in tree.children]}


def _tree(tree: JobTree, above: Tree | None = None) -> Tree:
    from rich.tree import Tree

    branch = Tree(_label(tree.job), guide_style="dim") if above is None else above.add(_label(tree.job))
    for child in tree.children:
        _tree(child, branch)
    return branch


def _label(job: Job) -> Text:
    from rich.text import Text

    from jobwire.cli.jobview import styled
    from jobwire.cli.output import printable

    name = "" if job.name == job.queue else f" ({printable(job.name)})"
    error = f"  {printable((job.error or '').partition(chr(10))[0])}" if job.error else ""
    return Text.assemble(
        (printable(job.id), "bold"), f" in {printable(job.queue)}{name}  ", styled(job.state), (error, "red")
    )
