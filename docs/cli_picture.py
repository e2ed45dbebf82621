"""Draw docs/images/cli.svg: commands of an operator and what they print, from a real run on an embedded server."""

import asyncio
import io
import os
import pty
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

from jobwire import ActiveJob, Backoff, NewJob, Queue, Worker, embedded

WIDTH, TALL = 110, 40
COMMANDS = [
    "jobwire queues",
    "jobwire jobs emails --state failed --limit 3",
    "jobwire retry emails --error ConnectionError --dry-run",
    "jobwire schedules list",
]


async def handle(job: ActiveJob) -> str:
    if job.data["to"].endswith("7@example.com"):
        raise ConnectionError("mail.example.com does not answer")
    return "sent"


async def fill(url: str) -> None:
    """Leaves completed, failed, waiting and delayed jobs, and a schedule."""
    letters = [NewJob({"to": f"user{number}@example.com"}, name="welcome") for number in range(40)]
    async with Queue("emails", url) as emails, Queue("reports", emails.connection) as reports:
        await emails.add_many(letters)
        await Worker("emails", handle, emails.connection, concurrency=10).run_until_idle()
        await emails.add_many([*letters[:12], NewJob({"to": "later@example.com"}, delay=3600)])
        await reports.add_many([NewJob({"day": day}, attempts=3, backoff=Backoff.exponential(1)) for day in range(3)])
        await reports.schedule("nightly", cron="0 3 * * *", tz="Europe/Berlin", data={"format": "pdf"})


def printed(command: str, environment: dict[str, str]) -> str:
    """Returns what the command prints at a terminal, with its colours."""
    ours, theirs = pty.openpty()
    words = [sys.executable, "-m", *command.split()]
    process = subprocess.Popen(words, stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    chunks: list[bytes] = []
    try:
        while chunk := os.read(ours, 65536):
            chunks.append(chunk)
    except OSError:  # the other end has been closed
        pass
    os.close(ours)
    process.wait(60)
    return b"".join(chunks).decode().replace("\r\n", "\n")


def main() -> None:
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    with tempfile.TemporaryDirectory() as folder, embedded.valkey(Path(folder)) as server:
        url = f"bullmq+{server.url}"
        asyncio.run(fill(url))
        environment = {**os.environ, "JOBWIRE_URL": url, "COLUMNS": str(WIDTH), "LINES": str(TALL), "TERM": "xterm"}
        for command in COMMANDS:
            console.print(f"[bold green]$[/] {command}", highlight=False)
            console.print(Text.from_ansi(printed(command, environment).rstrip()))
            console.print()
    picture = console.export_svg(title="jobwire")
    # A picture that asks another site for its font is shown without one by most viewers: let them take their own.
    picture = re.sub(r"@font-face \{.*?\}|<!--.*?-->", "", picture, flags=re.DOTALL)
    Path(__file__).parent.joinpath("images", "cli.svg").write_text(picture.replace("Fira Code", "ui-monospace"))


main()
