"""The check of wording: what counts as prose, and which patterns it refuses."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

TOOL = Path(__file__).parents[2] / "tools" / "prose.py"


@pytest.fixture(scope="module")
def prose() -> Any:
    spec = importlib.util.spec_from_file_location("prose", TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["prose"] = module
    spec.loader.exec_module(module)
    return module


def _found(prose: Any, source: str, file: str = "src/a.py") -> list[tuple[int, str]]:
    return [(one.line, one.pattern) for one in prose.findings(file, source)]


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("Waits until nobody holds it.", "nobody"),
        ("Keeps the row for ever.", "for ever"),
        ("Takes the number that the server tells.", "data that speaks"),
        ("Refuses text that is no JSON.", "is no X"),
        ("One worker's ear at the channel.", "metaphor"),
        ("Takes jobs back from the dead.", "metaphor"),
        ("Removes the jobs; how many.", "fragment after a semicolon"),
        ("Frees the key; False if it was free.", "fragment after a semicolon"),
        ("What its settling will need.", "sentence without a head"),
    ],
)
def test_each_pattern_is_found_in_a_docstring(prose: Any, text: str, pattern: str) -> None:
    assert _found(prose, f'"""{text}"""\n') == [(1, pattern)]


@pytest.mark.parametrize(
    "text",
    [
        "Returns the dead letter queue.",
        "Raises JobNotFound if there is no such job.",
        "Returns a job that is no longer held.",
        "Runs as the account `nobody`.",
        "Reads early; the next call goes on where this one stopped.",
    ],
)
def test_plain_sentences_are_left_alone(prose: Any, text: str) -> None:
    assert _found(prose, f'"""{text}"""\n') == []


def test_comments_logs_errors_and_help_are_prose_but_code_is_not(prose: Any) -> None:
    source = """\
nobody = {"whoever": "nobody"}  # nobody reads this
_log.warning("%s: nobody answered", nobody)
raise ValueError(f"{nobody} was taken by somebody")
option(help="Whoever asks", metavar="NOBODY")
rule = "must be taken by somebody"
"""
    assert sorted(_found(prose, source)) == [(line, "nobody") for line in range(1, 6)]


def test_markdown_and_scripts_are_read_without_their_code(prose: Any) -> None:
    markdown = "Some\nnobody `nobody`\n\n```\nnobody\n```\n\n    nobody\n\nsomebody\n"
    assert _found(prose, markdown, "docs/a.md") == [(2, "nobody"), (10, "nobody")]
    assert _found(prose, "-- nobody\nlocal nobody = 1\n", "src/a.lua") == [(1, "nobody")]


def test_a_forbidden_file_name_is_found(prose: Any) -> None:
    assert _found(prose, "", "src/doorbell.py") == [(1, "file name")]


def test_a_finding_is_listed_and_fails_the_check(
    prose: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "README.md").touch()
    module = tmp_path / "src" / "a.py"
    module.write_text("# plain\n")
    assert prose.main(tmp_path) == 0
    module.write_text("# nobody\n")
    assert prose.main(tmp_path) == 1
    assert "src/a.py:1: nobody: nobody\n" in capsys.readouterr().out
