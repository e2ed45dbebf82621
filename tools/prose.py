"""Refuses wording that has to be read twice: `python tools/prose.py` lists it, with exit code 1 if there is any.

Prose is: docstrings, comments, log lines, error texts and help texts of the Python files in src/, comment lines of its
scripts and queries, and the Markdown of README and docs/. Identifiers, other strings, `code` and fenced blocks are not.
The words to use instead are in docs/glossary.md.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent

_DATA = (
    "url|store|server|field|key|row|file|event|script|queue|option|column|schema|table|record|reply|answer|protocol|"
    "database|document|entry|message|value|name|header|index|stream|it|which|what|that"
)
PATTERNS = {
    "nobody": r"\b(?:nobody|somebody|whoever|whomever|anew)\b",
    "for ever": r"\bfor ever\b|\bforever\b",
    "data that speaks": rf"\b(?:{_DATA})s? (?:tells?|told|says?|said|knows?|knew)\b|\b(?:is|are|was|were|been) told\b",
    "is no X": r"(?<!there\s)\b(?:is|are|was|were) no (?!longer\b|more\b|less\b|fewer\b|later\b|such\b)[a-z]+",
    "metaphor": (
        r"\b(?:ears?|breaths?|hir(?:e|es|ed|ing)|desks?|lend(?:s|ing)?|lent|bur(?:y|ies|ied)|last words|goodbyes?"
        r"|errands?|doorbells?|heal(?:s|ed|ing)?|hangs? up|graves?|the dead(?! (?:letter|worker|process|job)))\b"
    ),
}
IN_DOCSTRINGS = {
    "fragment after a semicolon": (
        r"; (?:how (?:many|much|often|long)|which|whether|what|who|where|those that|the (?:number"
        r"|ids?|count|rest|claims|jobs)|(?:None|True|False) (?:if|where|for))\b[^.;:,]{0,50}\.\Z"
    ),
    "sentence without a head": r"\A(?:What|Whether|How|Where|When|Who|Whom|Why)\b",
}
FILE_NAMES = re.compile(
    "place|line|notes|lending|pace|wire|doorbell|healing|reach|course|carried|demands|facets|finishes|moments|control"
)
_LOGGERS = {"debug", "info", "warning", "error", "exception", "critical", "log", "warn"}
_SHOWN = {"help", "rule", "short_help"}
_CODE = re.compile(r"``.*?``|`[^`\n]*`", re.DOTALL)


class Prose(NamedTuple):
    """A piece of text: the line of the file on which it begins, and whether it is a docstring."""

    line: int
    text: str
    docstring: bool = False


class Finding(NamedTuple):
    file: str
    line: int
    pattern: str
    text: str


def of_python(source: str) -> Iterator[Prose]:
    """Yields the docstrings, comments, log lines, error texts and help texts of Python source."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield Prose(token.start[0], token.string.lstrip("#! "))
    seen: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield Prose(node.lineno, node.value.value, docstring=True)
        for shown in _shown(node):
            for part in ast.walk(shown):
                if isinstance(part, ast.Constant) and isinstance(part.value, str) and id(part) not in seen:
                    seen.add(id(part))
                    yield Prose(part.lineno, part.value)


def _shown(node: ast.AST) -> list[ast.expr]:
    """Returns the expressions of a node whose strings are shown to people."""
    if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
        return [*node.exc.args, *(keyword.value for keyword in node.exc.keywords)]
    if isinstance(node, ast.Call):
        by_name = [keyword.value for keyword in node.keywords if keyword.arg in _SHOWN]
        logs = isinstance(node.func, ast.Attribute) and node.func.attr in _LOGGERS
        return [*by_name, *(node.args[:2] if logs else ())]
    if isinstance(node, ast.Assign) and any(isinstance(name, ast.Name) and name.id in _SHOWN for name in node.targets):
        return [node.value]
    return []


def of_markdown(source: str) -> Iterator[Prose]:
    """Yields the paragraphs of Markdown without fenced and indented code."""
    text = re.sub(
        r"^```.*?^```", lambda found: "\n" * found.group().count("\n"), source, flags=re.DOTALL | re.MULTILINE
    )
    line = 1
    for paragraph in re.split(r"(\n\s*\n)", text):
        if not paragraph.startswith("    "):
            yield Prose(line, paragraph)
        line += paragraph.count("\n")


def of_script(source: str) -> Iterator[Prose]:
    """Yields the comment lines of Lua and SQL."""
    for number, line in enumerate(source.splitlines(), 1):
        if line.lstrip().startswith("--"):
            yield Prose(number, line.strip(" -"))


READERS = {".py": of_python, ".md": of_markdown, ".lua": of_script, ".sql": of_script}


def findings(file: str, source: str) -> Iterator[Finding]:
    """Yields every match in one file, in the order of PATTERNS for each piece of prose."""
    name = Path(file)
    if FILE_NAMES.fullmatch(name.stem) and name.suffix != ".md":
        yield Finding(file, 1, "file name", name.name)
    for prose in READERS[name.suffix](source):
        text = _CODE.sub(lambda code: "`" + "\n" * code.group().count("\n"), prose.text)
        for pattern, regex in (PATTERNS | IN_DOCSTRINGS if prose.docstring else PATTERNS).items():
            for found in re.finditer(regex.replace(" ", r"\s+"), text.rstrip(), re.IGNORECASE):
                line = prose.line + text.count("\n", 0, found.start())
                yield Finding(file, line, pattern, " ".join(found.group().split())[:60])


def files(root: Path) -> list[Path]:
    """Returns the files that hold prose, sorted."""
    found = [path for path in (root / "src").rglob("*") if path.suffix in READERS]
    return sorted([*found, *(root / "docs").rglob("*.md"), root / "README.md"])


def main(root: Path = ROOT) -> int:
    """Lists the findings and returns the exit code."""
    found: list[Finding] = []
    for path in files(root):
        found += findings(path.relative_to(root).as_posix(), path.read_text(encoding="utf-8"))
    for one in found:
        sys.stdout.write(f"{one.file}:{one.line}: {one.pattern}: {one.text}\n")
    if found:
        sys.stdout.write("wording: use the words of docs/glossary.md\n")
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())
