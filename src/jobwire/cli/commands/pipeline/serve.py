"""`jobwire pipeline serve`."""

# ruff: noqa: PLC0415 - what a command works with is imported when it runs, so that --help answers at once

from __future__ import annotations

from jobwire.cli.commands.pipeline.parameters import Conf, Master, settings


def serve(master: Master = None, conf: Conf = None) -> None:
    """Keep a Spark warm until Ctrl-C: commands in this folder use it instead of starting their own."""
    from jobwire.cli.commands.pipeline.stage import interrupted, interrupted_later, staged
    from jobwire.cli.output import remark
    from jobwire.pipeline.spark.served import FILE, serving

    with staged(quiet=False) as progress:
        progress("starting Spark", 0, None)
        server = serving(master, settings(conf))
        with interrupted_later(lambda: progress("stopping as soon as Spark has started", 0, None)):
            served = server.__enter__()
    try:
        with interrupted() as stop:
            remark(f"Spark is warm (port {served.port}, {FILE}); Ctrl-C ends it")
            stop.wait()
    finally:
        server.__exit__(None, None, None)
