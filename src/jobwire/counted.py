"""Numbers with nouns in singular or plural, and lists that are cut."""

from __future__ import annotations

from collections.abc import Sequence


def counted(number: int, noun: str, one: str = "", many: str = "") -> str:
    """Returns the number with its noun, then `one` or `many`.

    >>> counted(1, "job"), counted(0, "job"), counted(12_000, "finished job"), counted(2, "entry")
    ('1 job', '0 jobs', '12,000 finished jobs', '2 entries')
    >>> counted(1, "job", " is", " are"), counted(2, "job", " is", " are")
    ('1 job is', '2 jobs are')
    """
    if number == 1:
        return f"1 {noun}{one}"
    plural = noun[:-1] + "ies" if noun.endswith("ry") else noun + "s"
    return f"{number:,} {plural}{many}"


def few(names: Sequence[str], most: int = 3) -> str:
    """Returns the first names, with an ellipsis if there are more.

    >>> few(["a", "b"]), few(["a", "b", "c", "d"])
    ('a, b', 'a, b, c, …')
    """
    return ", ".join(names[:most]) + (", …" if len(names) > most else "")
