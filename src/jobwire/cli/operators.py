"""The commands of producers and operators, with examples of each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jobwire.cli.commands.act import cancel, promote, remove, retry
from jobwire.cli.commands.add import add
from jobwire.cli.commands.bench import bench
from jobwire.cli.commands.completion import completion
from jobwire.cli.commands.counts import counts
from jobwire.cli.commands.dashboard import dashboard
from jobwire.cli.commands.doctor import doctor
from jobwire.cli.commands.edit import edit, limits, unique
from jobwire.cli.commands.empty import clean, drain, obliterate
from jobwire.cli.commands.events import events
from jobwire.cli.commands.flow import flow
from jobwire.cli.commands.hold import pause, resume
from jobwire.cli.commands.job import job
from jobwire.cli.commands.jobs import jobs
from jobwire.cli.commands.logs import logs
from jobwire.cli.commands.queues import queues
from jobwire.cli.commands.schedules import app as schedules
from jobwire.cli.commands.tasks import tasks
from jobwire.cli.commands.top import top
from jobwire.cli.commands.wait import wait
from jobwire.cli.commands.workers import workers
from jobwire.cli.groups import Commands
from jobwire.cli.parameters import examples

LOOK = "Look"
ADD = "Add and wait"
ACT = "Act on jobs"
QUEUE = "Act on queues"
MORE = "More"

_COMMANDS: tuple[tuple[str, Callable[..., Any], tuple[str, ...]], ...] = (
    (LOOK, queues, ("jobwire queues --store prod", "jobwire queues --names")),
    (LOOK, counts, ("jobwire counts emails --json", "jobwire counts emails --watch")),
    (
        LOOK,
        jobs,
        (
            "jobwire jobs emails --state failed --error timeout --older-than 10m",
            "jobwire jobs emails --json --limit 1000 | jq -r .id",
        ),
    ),
    (
        LOOK,
        dashboard,
        ("jobwire dashboard --store prod --store staging", "jobwire dashboard --allow-actions --tokens tokens.toml"),
    ),
    (LOOK, top, ("jobwire top --store prod", "jobwire top emails reports --every 5s")),
    (
        LOOK,
        doctor,
        ("jobwire doctor --store prod", "jobwire doctor --json | jq -r .code", "jobwire doctor --store prod --fix"),
    ),
    (LOOK, job, ("jobwire job emails 17", "jobwire job emails 17 --json")),
    (LOOK, logs, ("jobwire logs emails 17", "jobwire logs emails 17 -f")),
    (
        LOOK,
        events,
        (
            "jobwire events emails --last 50",
            "jobwire events emails -f --json",
            "jobwire events emails --trim 10000 --yes",
        ),
    ),
    (LOOK, workers, ("jobwire workers emails",)),
    (LOOK, flow, ("jobwire flow books 17",)),
    (LOOK, tasks, ("jobwire tasks shop.tasks:app",)),
    (
        ADD,
        add,
        (
            """jobwire add emails '{"to": "a@example.com"}' --name welcome --delay 10m --attempts 3""",
            "jobwire add emails - --backoff exponential:2s < mail.json",
            "jobwire add emails - --lines < mails.jsonl",
            "jobwire add videos 17 --target-capability gpu --keep-failed 7d",
        ),
    ),
    (ADD, wait, ("jobwire wait emails 17 --timeout 30s",)),
    (ACT, retry, ("jobwire retry emails 17 18", "jobwire retry emails --error ConnectionError --older-than 10m")),
    (ACT, remove, ("jobwire remove emails 17", "jobwire remove emails --state completed --older-than 7d --yes")),
    (ACT, promote, ("jobwire promote emails 17", "jobwire promote emails --name welcome")),
    (ACT, cancel, ("jobwire cancel emails 17", "jobwire cancel emails --all --dry-run")),
    (ACT, edit, ("""jobwire edit emails 17 --data '{"to": "b@example.com"}'""", "jobwire edit emails 17 --delay 10m")),
    (ACT, unique, ("jobwire unique emails order-17", "jobwire unique emails order-17 --release")),
    (QUEUE, pause, ("jobwire pause emails",)),
    (QUEUE, resume, ("jobwire resume emails",)),
    (QUEUE, limits, ("jobwire limits emails", "jobwire limits emails --rate 100/1m --concurrency 10")),
    (QUEUE, drain, ("jobwire drain emails --delayed",)),
    (
        QUEUE,
        clean,
        ("jobwire clean emails --older-than 7d", "jobwire clean emails --state failed --older-than 30d --yes"),
    ),
    (QUEUE, obliterate, ("jobwire obliterate emails",)),
    (MORE, bench, ("jobwire bench --url bullmq+redis://127.0.0.1", "jobwire bench --seconds 15 --json")),
    (
        MORE,
        completion,
        (
            "source <(jobwire completion bash)",
            "jobwire completion zsh > ~/.zfunc/_jobwire",
            "jobwire completion fish > ~/.config/fish/completions/jobwire.fish",
        ),
    ),
)


def register(app: Commands) -> None:
    """Adds the commands to the application."""
    for panel, command, lines in _COMMANDS:
        app.command(rich_help_panel=panel, epilog=examples(*lines))(command)
    app.add_typer(schedules, rich_help_panel=QUEUE)
