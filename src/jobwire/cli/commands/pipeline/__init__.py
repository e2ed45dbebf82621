"""`jobwire pipeline …`: history, reports, archive, bulk load, moves and workers, on Spark."""

from __future__ import annotations

import typer

from jobwire.cli.commands.pipeline.archive import archive, restore
from jobwire.cli.commands.pipeline.build import build
from jobwire.cli.commands.pipeline.doctor import doctor
from jobwire.cli.commands.pipeline.ingest import ingest
from jobwire.cli.commands.pipeline.load import load
from jobwire.cli.commands.pipeline.move import move
from jobwire.cli.commands.pipeline.report import report
from jobwire.cli.commands.pipeline.run import run
from jobwire.cli.commands.pipeline.serve import serve
from jobwire.cli.commands.pipeline.shell import shell
from jobwire.cli.commands.pipeline.work import work
from jobwire.cli.parameters import examples

HISTORY = "History and reports"
DATA = "Jobs in bulk"
HEALTH = "Is it all there?"

app = typer.Typer(
    name="pipeline",
    help="History, reports, archive, bulk load, moves between stores and workers, on Spark.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)

app.command(
    rich_help_panel=HISTORY,
    epilog=examples(
        "jobwire pipeline run bullmq+redis://cache:6379 pgboss+postgresql://db/main --lake ./lake",
        "jobwire pipeline run --queue emails",
    ),
)(run)
app.command(
    rich_help_panel=HISTORY,
    epilog=examples("jobwire pipeline ingest bullmq+redis://cache:6379 --continuous --every 30"),
)(ingest)
app.command(rich_help_panel=HISTORY, epilog=examples("jobwire pipeline build --from 2026-01-01 --to 2026-02-01"))(build)
app.command(rich_help_panel=HISTORY, epilog=examples("jobwire pipeline report --out ./monday --png"))(report)
app.command(
    rich_help_panel=HISTORY,
    epilog=examples("jobwire pipeline shell --lake ./lake", "jobwire pipeline shell < monday.py"),
)(shell)
app.command(
    rich_help_panel=DATA,
    epilog=examples(
        "jobwire pipeline load customers.csv --to bullmq+redis://cache:6379 --queue welcome",
        "jobwire pipeline load warehouse.customers --kind table --to pgboss+postgresql://db/main --queue welcome",
    ),
)(load)
app.command(
    rich_help_panel=DATA,
    epilog=examples(
        "jobwire pipeline move --from bullmq+redis://cache --to pgboss+postgresql://db/main --queue emails --dry-run"
    ),
)(move)
app.command(
    rich_help_panel=DATA,
    epilog=examples("jobwire pipeline archive bullmq+redis://cache --queue emails --before 2026-01-01 --purge"),
)(archive)
app.command(
    rich_help_panel=DATA,
    epilog=examples("jobwire pipeline restore bullmq+redis://cache --queue emails --id 17 --id 18"),
)(restore)
app.command(
    rich_help_panel=DATA,
    epilog=examples(
        "jobwire pipeline work emails shop.mail:send --tasks 8 --master spark://host:7077",
        "jobwire pipeline work emails ./mail.py:send --tasks 4 --concurrency 20 --for 30m",
    ),
)(work)
app.command(
    rich_help_panel=HEALTH, epilog=examples("jobwire pipeline serve", "jobwire pipeline serve --master 'local[4,4]'")
)(serve)
app.command(rich_help_panel=HEALTH, epilog=examples("jobwire pipeline doctor bullmq+redis://cache:6379"))(doctor)
