"""`jobwire keda`: documents that let KEDA scale a worker's Deployment by the length of its queue."""

# ruff: noqa: PLC0415 - what a command works with is imported when it runs, so that --help answers at once

from __future__ import annotations

from typing import Annotated

import typer

from jobwire.cli.parameters import QueueName, StoreName, Url


def keda(
    queue: QueueName,
    *,
    name: Annotated[
        str, typer.Option(metavar="NAME", help="The Deployment of the workers, and the name of the documents.")
    ] = "jobwire-worker",
    secret: Annotated[
        str, typer.Option(metavar="NAME", help="The Secret with the store's password.")
    ] = "jobwire-store",  # noqa: S107 - the name of a secret, not a secret
    fewest: Annotated[int, typer.Option("--min", metavar="N", help="The fewest replicas.")] = 1,
    most: Annotated[int, typer.Option("--max", metavar="N", help="The most replicas.")] = 10,
    per_worker: Annotated[
        int, typer.Option(metavar="N", help="Jobs per replica: its concurrency, for no job to wait.")
    ] = 10,
    url: Url = None,
    store: StoreName = None,
) -> None:
    """Print a ScaledObject of KEDA that scales workers by the jobs of a queue that wait or run.

    The store is not asked, and no password is printed: KEDA reads it from a Secret.
    """
    from jobwire.backends.autoscaling import scaling_of
    from jobwire.cli.keda_documents import Wanted, documents
    from jobwire.cli.output import say
    from jobwire.cli.profiles import located
    from jobwire.urls import default_url, parse

    wanted = Wanted(queue, name, secret, fewest, most, per_worker)
    address = parse(located(url, store) or default_url())
    say(documents(scaling_of(address, queue, from_zero=fewest == 0), wanted).rstrip("\n"))
