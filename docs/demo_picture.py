"""Draw docs/demo.svg: the demo's table as it stands after six seconds of a real run."""

import asyncio
import io
import re
import tempfile
from pathlib import Path

from rich.console import Console

from jobwire.cli.demo.board import Board
from jobwire.cli.demo.moment import Moment
from jobwire.cli.demo.run import Plan, run
from jobwire.cli.demo.stations import stations

SECONDS = 6


def main() -> None:
    board = Board(width=80)
    console = Console(record=True, width=80, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    drawn: list[object] = []

    def watch(moment: Moment) -> None:
        picture = board.draw(moment)
        if moment.elapsed < SECONDS:
            drawn[:] = [picture]

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(run(stations(Path(folder)), Plan(2 * SECONDS, 200), watch))
    console.print(drawn[0])
    picture = console.export_svg(title="jobwire demo")
    # A picture that asks another site for its font is shown without one by most viewers: let them take their own.
    picture = re.sub(r"@font-face \{.*?\}|<!--.*?-->", "", picture, flags=re.DOTALL)
    Path(__file__).with_name("demo.svg").write_text(picture.replace("Fira Code", "ui-monospace"))


main()
