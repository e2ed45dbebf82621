"""`jobwire pipeline …`: history, reports, archive, bulk load, moves and workers, on Spark."""

from __future__ import annotations

from jobwire.cli.commands.pipeline.archive import archive, restore
from jobwire.cli.commands.pipeline.build import build
from jobwire.cli.commands.pipeline.doctor import doctor
from jobwire.cli.commands.pipeline.export import export
from jobwire.cli.commands.pipeline.ingest import ingest
from jobwire.cli.commands.pipeline.lineage import lineage
from jobwire.cli.commands.pipeline.load import load
from jobwire.cli.commands.pipeline.move import move
from jobwire.cli.commands.pipeline.report import report
from jobwire.cli.commands.pipeline.run import run
from jobwire.cli.commands.pipeline.serve import serve
from jobwire.cli.commands.pipeline.shell import shell
from jobwire.cli.commands.pipeline.slo import slo
from jobwire.cli.commands.pipeline.sql import sql
from jobwire.cli.commands.pipeline.status import status
from jobwire.cli.commands.pipeline.tenants import tenants
from jobwire.cli.commands.pipeline.tidy import tidy
from jobwire.cli.commands.pipeline.work import work
from jobwire.cli.groups import Commands
from jobwire.cli.parameters import examples

HISTORY = "History and reports"
DATA = "Jobs in bulk"
HEALTH = "Is it all there?"

app = Commands(
    name="pipeline",
    help="History, reports, archive, bulk load, moves between stores and workers, on Spark.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)

app.command(
    rich_help_panel=HISTORY,
    epilog=examples(
        "jobwire pipeline run bullmq+redis://cache:6379 pgboss+postgresql://db/main --lake ./lake",
        "jobwire pipeline run --queue emails --fail-on quality",
    ),
)(run)
app.command(
    rich_help_panel=HISTORY,
    epilog=examples("jobwire pipeline ingest bullmq+redis://cache:6379 --continuous --every 30"),
)(ingest)
app.command(rich_help_panel=HISTORY, epilog=examples("jobwire pipeline build --from 2026-01-01 --to 2026-02-01"))(build)
app.command(rich_help_panel=HISTORY, epilog=examples("jobwire pipeline report --out ./monday --png --since-last"))(
    report
)
app.command(
    rich_help_panel=HISTORY,
    epilog=examples(
        "jobwire pipeline sql",
        "jobwire pipeline sql 'select queue, count(*) as jobs from silver_jobs group by all'",
        "jobwire pipeline sql - --csv < question.sql > answer.csv",
        "jobwire pipeline sql --views lake.duckdb",
    ),
)(sql)
app.command(
    rich_help_panel=HISTORY,
    epilog=examples(
        "jobwire pipeline export --format delta --to ./delta",
        "jobwire pipeline export --format iceberg --to ./iceberg --table silver_jobs --table gold_latency_hourly",
    ),
)(export)
app.command(
    rich_help_panel=HISTORY,
    epilog=examples("jobwire pipeline slo", "jobwire pipeline slo --metrics /var/lib/node_exporter/jobwire.prom"),
)(slo)
app.command(rich_help_panel=HISTORY, epilog=examples("jobwire pipeline tenants --from 2026-05-01 --to 2026-06-01"))(
    tenants
)
app.command(rich_help_panel=HISTORY, epilog=examples("jobwire pipeline tidy --keep 90d"))(tidy)
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
    rich_help_panel=HEALTH,
    epilog=examples(
        "jobwire pipeline lineage --since-last >> events.jsonl", "jobwire pipeline lineage --namespace prod"
    ),
)(lineage)
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
app.command(rich_help_panel=HEALTH, epilog=examples("jobwire pipeline status --lake ./lake"))(status)
app.command(
    rich_help_panel=HEALTH,
    epilog=examples(
        "jobwire pipeline doctor bullmq+redis://cache:6379",
        "jobwire pipeline doctor --session --master spark://host:7077",
    ),
)(doctor)
