"""The pictures of the documentation come from a real run: each has the program that draws it, and needs no font of
another site."""

from __future__ import annotations

import re

import pytest

from .blocks import DOCS

DRAWN = {"demo.svg": "demo_picture.py", "images/cli.svg": "cli_picture.py"}


@pytest.mark.parametrize("picture", DRAWN)
def test_a_picture_is_drawn_by_its_program_and_loads_nothing(picture: str) -> None:
    assert picture.rpartition("/")[2] in (DOCS / DRAWN[picture]).read_text()
    drawn = (DOCS / picture).read_text()
    assert re.findall(r"url\(https?:|@import|<image|@font-face", drawn) == []


def test_the_commands_of_the_picture_are_those_of_its_program() -> None:
    program = (DOCS / "cli_picture.py").read_text()
    drawn = re.sub(r"&#160;|\xa0", " ", re.sub(r"<[^>]+>", "", (DOCS / "images" / "cli.svg").read_text()))
    for command in re.findall(r'^    "(jobwire [^"]+)",$', program, re.MULTILINE):
        assert command in drawn, command
