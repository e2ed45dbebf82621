"""A number of which there may be more."""

from __future__ import annotations


class AtLeast(int):
    """A count that was stopped at a limit. It is written with a plus sign wherever a page writes numbers.

    >>> f"{AtLeast(10_000):,} jobs", f"{AtLeast(10_000) + 5:,}", f"{sum([1, AtLeast(2)])}"
    ('10,000+ jobs', '10,005+', '3+')
    """

    def __add__(self, other: int) -> AtLeast:
        return AtLeast(int(self) + other)

    __radd__ = __add__

    def __format__(self, spec: str, /) -> str:
        return f"{int(self):{spec}}+"
