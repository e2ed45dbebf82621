"""Draw docs/demo.svg: the demo's table as it stands after six seconds of a real run."""

import asyncio
import io
import re
import tempfile
from pathlib import Path

from rich.console import Console

from jobwire.cli.demo.board import Board
from jobwire.cli.demo.demo_campaign import DemoCampaign
from jobwire.cli.demo.demo_stores import demo_stores
from jobwire.cli.demo.run import Plan, run
from jobwire.cli.demo.snapshot import Snapshot

SECONDS = 6


def main() -> None:
    board = Board(width=80)
    console = Console(record=True, width=80, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    drawn: list[object] = []

    def watch(snapshot: Snapshot) -> None:
        picture = board.draw(snapshot)
        if snapshot.elapsed < SECONDS:
            drawn[:] = [picture]

    with tempfile.TemporaryDirectory() as folder:
        campaign = DemoCampaign(Path(folder), 2 * SECONDS)
        asyncio.run(run(demo_stores(Path(folder)), Plan(2 * SECONDS, 200), watch, campaign))
    console.print(drawn[0])
    picture = console.export_svg(title="jobwire demo")
    # A picture that asks another site for its font is shown without one by most viewers: let them take their own.
    picture = re.sub(r"@font-face \{.*?\}|<!--.*?-->", "", picture, flags=re.DOTALL)
    Path(__file__).with_name("demo.svg").write_text(picture.replace("Fira Code", "ui-monospace"))


main()
