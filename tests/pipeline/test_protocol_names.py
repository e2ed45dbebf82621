"""Nothing above a protocol names it: the pipeline asks dialects, the rest asks Capabilities."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import jobwire
from jobwire.backends.rules import rules_of
from jobwire.pipeline.stores.dialect import all_dialects

HOUSE = Path(jobwire.__file__).parent
EXAMPLE = re.compile(r"\w+\+[a-z]+://\S*")
NAMED = {
    "backends": "the protocols themselves",
    "pipeline/stores": "their dialects and readers",
    "native": "options that only one protocol has",
    "protocols.py": "the registry",
    "urls.py": "refusals of a URL show what one looks like",
    "url_options.py": "so do refusals of its options",
    "embedded": "the servers that speak a protocol",
    "spelling.py": "an option of a peer has its nearest of ours",
    "campaigns": "an application on one protocol",
    "cli/commands/campaign": "its commands",
    "cli/commands/pgboss.py": "the command that installs the schema of one protocol",
}
"""The places in which a string may name a protocol, and why."""


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


def test_no_string_elsewhere_names_a_protocol() -> None:
    """URLs in examples of the command line are no branch on a protocol."""
    found = [
        f"{path.relative_to(HOUSE)}:{node.lineno}: {node.value}"
        for path in sorted(HOUSE.rglob("*.py"))
        if not any(path.is_relative_to(HOUSE / named) for named in NAMED)
        for node in strings(ast.parse(path.read_text()))
        if isinstance(node.value, str) and names().search(EXAMPLE.sub("", node.value))
    ]

    assert found == []


def test_every_place_that_may_name_a_protocol_does() -> None:
    unused = [
        named
        for named in NAMED
        if not any(
            names().search(path.read_text())
            for path in [HOUSE / named, *(HOUSE / named).rglob("*.py")]
            if path.is_file()
        )
    ]

    assert unused == []


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
