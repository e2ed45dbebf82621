"""`jobwire campaign …`: one template sent to many channels, at a held rate."""

from __future__ import annotations

from jobwire.cli.commands.campaign.batches import batches
from jobwire.cli.commands.campaign.change import cancel, pause, rate, resume
from jobwire.cli.commands.campaign.channels import app as channels
from jobwire.cli.commands.campaign.create import create, preview
from jobwire.cli.commands.campaign.import_channels import import_channels
from jobwire.cli.commands.campaign.init import init
from jobwire.cli.commands.campaign.list import list_campaigns
from jobwire.cli.commands.campaign.purge import purge
from jobwire.cli.commands.campaign.report import report
from jobwire.cli.commands.campaign.serve import serve
from jobwire.cli.commands.campaign.start import start
from jobwire.cli.commands.campaign.status import status
from jobwire.cli.commands.campaign.templates import app as templates
from jobwire.cli.commands.campaign.watch import watch
from jobwire.cli.commands.campaign.worker import worker
from jobwire.cli.groups import Commands
from jobwire.cli.parameters import examples

PREPARE = "Prepare"
RUN = "Run"
LOOK = "Look"
UPKEEP = "Upkeep"

app = Commands(
    name="campaign",
    help="Send a template to many channels at a held rate, on PostgreSQL.",
    epilog=examples(
        "jobwire campaign init",
        "jobwire campaign import-channels channels.csv --batch news",
        "jobwire campaign templates add hello --content 'Hello {username}, meet {product}!'",
        "jobwire campaign create spring --batch news --template hello --rate 60 --param product=Tea",
        "jobwire campaign start spring",
        "jobwire campaign worker --burst",
    ),
    no_args_is_help=True,
    rich_markup_mode="rich",
)

app.command(
    rich_help_panel=PREPARE, epilog=examples("jobwire campaign init --url postgresql://localhost/app --schema mail")
)(init)
app.command(
    rich_help_panel=PREPARE,
    epilog=examples(
        "jobwire campaign import-channels channels.csv --batch news",
        "jobwire campaign import-channels channels.csv --batch news --skip-bad",
    ),
)(import_channels)
app.add_typer(channels, rich_help_panel=PREPARE)
app.command(rich_help_panel=PREPARE, epilog=examples("jobwire campaign batches --json"))(batches)
app.add_typer(templates, rich_help_panel=PREPARE)
app.command(
    rich_help_panel=PREPARE,
    epilog=examples(
        "jobwire campaign create spring --batch news --template hello --rate 60 --param product=Tea",
        "jobwire campaign create spring --batch news --template hello --rate 600 --mode LIVE",
    ),
)(create)
app.command(rich_help_panel=PREPARE, epilog=examples("jobwire campaign preview spring --limit 10"))(preview)
app.command(
    rich_help_panel=RUN, epilog=examples("jobwire campaign start spring", "jobwire campaign start spring --yes")
)(start)
app.command(rich_help_panel=RUN, epilog=examples("jobwire campaign pause spring --reason 'a typo in the text'"))(pause)
app.command(rich_help_panel=RUN, epilog=examples("jobwire campaign resume spring"))(resume)
app.command(rich_help_panel=RUN, epilog=examples("jobwire campaign cancel spring"))(cancel)
app.command(rich_help_panel=RUN, epilog=examples("jobwire campaign rate spring 600"))(rate)
app.command(
    rich_help_panel=RUN,
    epilog=examples(
        "jobwire campaign worker --transport outbox:./out.jsonl",
        "jobwire campaign worker --transport webhook:https://example.com/hook --concurrency 20",
        "jobwire campaign worker --burst",
    ),
)(worker)
app.command("list", rich_help_panel=LOOK, epilog=examples("jobwire campaign list --status running"))(list_campaigns)
app.command(rich_help_panel=LOOK, epilog=examples("jobwire campaign status spring --json"))(status)
app.command(rich_help_panel=LOOK, epilog=examples("jobwire campaign watch spring"))(watch)
app.command(
    rich_help_panel=LOOK,
    epilog=examples("jobwire campaign report spring", "jobwire campaign report spring --deliveries spring.csv"),
)(report)
app.command(rich_help_panel=UPKEEP, epilog=examples("jobwire campaign purge --sent-before 90d"))(purge)
app.command(
    rich_help_panel=RUN,
    epilog=examples(
        "jobwire campaign serve --url postgresql://localhost/app",
        "jobwire campaign serve --host 0.0.0.0 --tokens tokens.toml",
    ),
)(serve)
