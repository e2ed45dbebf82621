"""Nothing above a protocol names it: the pipeline asks dialects, the rest asks Capabilities."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import jobwire
from jobwire.backends.rules import rules_of
from jobwire.pipeline.stores.dialect import all_dialects

HOUSE = Path(jobwire.__file__).parent
BLIND = [
    "acted.py",
    "coalesce.py",
    "flow.py",
    "model.py",
    "paging.py",
    "preparing.py",
    "queue.py",
    "queue_access.py",
    "queue_admin.py",
    "retry.py",
    "worker",
]
"""Modules and packages above `backends/` in which no protocol is named by a string."""


def names() -> re.Pattern[str]:
    """Matches protocols as they are called in URLs and in sentences."""
    known = {dialect.protocol for dialect in all_dialects()}
    known |= {rules_of(name).capabilities.protocol for name in known} | {"pg-boss"}
    return re.compile("|".join(map(re.escape, sorted(known))), re.IGNORECASE)


def without_examples(text: str) -> str:
    """Blanks the examples of docstrings, with their results: those need some URL."""
    return re.sub(r"^ *>>> .*\n(?: *\S.*\n)*?(?= *(?:\"\"\"|\n))", "\n", text, flags=re.MULTILINE)


def test_the_pipeline_above_its_stores_names_no_protocol() -> None:
    room = HOUSE / "pipeline"
    found = [
        f"{path.relative_to(room)}: {line.strip()}"
        for path in sorted(room.rglob("*"))
        if path.suffix in (".py", ".css", ".html", ".sql") and "stores" not in path.relative_to(room).parts
        for line in without_examples(path.read_text()).splitlines()
        if names().search(line)
    ]

    assert found == []


@pytest.mark.parametrize("part", BLIND)
def test_what_is_above_the_backends_compares_no_string_with_a_protocol(part: str) -> None:
    files = [HOUSE / part] if part.endswith(".py") else sorted((HOUSE / part).rglob("*.py"))
    assert files
    found = [
        f"{path.name}:{node.lineno}: {node.value}"
        for path in files
        for node in strings(ast.parse(path.read_text()))
        if isinstance(node.value, str) and names().search(node.value)
    ]

    assert found == []


def strings(tree: ast.AST) -> list[ast.Constant]:
    """All strings but those that are docstrings."""
    documents = {
        id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    return [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in documents]


def test_the_search_finds_a_name_in_code_and_leaves_examples_alone() -> None:
    text = 'def f():\n    """Text.\n\n    >>> f("bullmq+redis://a")\n    \'bullmq\'\n    """\n    return "Pg-Boss"\n'

    assert [line.strip() for line in without_examples(text).splitlines() if names().search(line)] == [
        'return "Pg-Boss"'
    ]
