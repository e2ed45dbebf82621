"""The SQL of this backend: one file per statement, `sql/<duty>/<name>.sql`, fitted to the schema that was found.

A line that ends in `--? words` is kept only if every word holds, a line that ends in `--! word` only if it does not. A
word is a column of `job` (`group_id`), a column of another table (`queue.notify`), a table (`job_dependency`), or a
feature that the caller asks for. `{job}` is the table of the queue, `{now}` the database's time as pg-boss reads it,
`:name` a value. A line `{columns}`, `{claim}` or `{forget_side}` stands for the text of that file.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

from jobwire.backends.pgboss.connection.pipelined import Statement
from jobwire.backends.pgboss.connection.schema import Layout

_CONDITION = re.compile(r"^(.*?)\s*--([?!]) ([\w. ]+)$")
_PART = re.compile(r"^\{(columns|claim|forget_side)\}\n", re.MULTILINE)
_VALUE = re.compile(r"(?<![:\w]):([a-z_]+)")


@cache
def source(name: str) -> str:
    """Returns the text of a statement, with its comments."""
    return _sources()[name].read_text(encoding="utf-8")


@cache
def _sources() -> dict[str, Traversable]:
    folders = [folder for folder in files("jobwire.backends.pgboss").joinpath("sql").iterdir() if folder.is_dir()]
    return {file.name.removesuffix(".sql"): file for folder in folders for file in folder.iterdir()}


def statement(name: str, text: str) -> Statement:
    """Returns a statement whose values have names: `:queue` becomes `$1`, the next name `$2`, in the order of first
    use.

    The same text has the same name, so backends that share a connection share what is prepared on it.
    """
    order: dict[str, int] = {}
    numbered = _VALUE.sub(lambda found: f"${order.setdefault(found[1], len(order) + 1)}", text)
    digest = hashlib.sha256(numbered.encode()).hexdigest()[:12]
    return Statement(f"jobwire_{name}_{digest}".encode(), numbered.encode(), tuple(order))


BEGIN = statement("begin", "BEGIN")
COMMIT = statement("commit", "COMMIT")
ROLLBACK = statement("rollback", "ROLLBACK")


class Statements:
    """The statements of one schema, each made once per table and set of features."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self._made: dict[tuple[str, str, frozenset[str]], Statement] = {}

    def get(self, name: str, table: str = "job", features: Iterable[str] = ()) -> Statement:
        key = (name, table, frozenset(features))
        made = self._made.get(key)
        if made is None:
            text = self._fitted(source(name), table, key[2])
            made = self._made[key] = statement(name, text)
        return made

    def _fitted(self, text: str, table: str, features: frozenset[str]) -> str:
        layout = self.layout
        text = _PART.sub(lambda found: source(found[1]), text)
        lines: list[str] = []
        for line in text.splitlines():
            found = _CONDITION.match(line)
            if found is None:
                if not line.startswith("--"):
                    lines.append(line)
            elif all(word in features or layout.has(word) for word in found[3].split()) == (found[2] == "?"):
                lines.append(found[1])
        return "\n".join(lines).format(schema=layout.schema, side=layout.side, job=layout.table(table), now=layout.now)
