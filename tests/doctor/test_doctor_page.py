"""docs/doctor.md has every kind of finding that the source has, with the same words."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any, cast

import jobwire

HOUSE = Path(jobwire.__file__).parent
PAGE = (Path(__file__).resolve().parents[2] / "docs" / "doctor.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| `([a-z-]+)` \| (\w+) \| (.*?) \| (.*?) \| (.*?) \|$", re.MULTILINE)


def kinds() -> dict[str, tuple[str, str, str]]:
    """Returns weight, title and risk of each code in the source. A code that is used twice is listed as such."""
    found: dict[str, tuple[str, str, str]] = {}
    for path in sorted(HOUSE.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if "FindingKind(" in text else ():
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "FindingKind":
                code, weight, title, risk, _ = cast("list[Any]", node.args)
                assert code.value not in found, f"{code.value} is the code of two kinds"
                found[code.value] = (weight.attr.lower(), title.value, risk.value)
    return found


def test_the_tables_have_every_finding_in_the_words_of_the_source() -> None:
    assert {code: (weight, title, risk) for code, weight, title, risk, _ in ROW.findall(PAGE)} == kinds()


def test_every_row_has_a_remedy() -> None:
    assert [code for code, *_, remedy in ROW.findall(PAGE) if not remedy.strip()] == []


def test_every_kind_is_broken_in_a_test() -> None:
    tests = "\n".join(path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("test_*.py"))
    assert [code for code in kinds() if f'"{code}"' not in tests] == []
