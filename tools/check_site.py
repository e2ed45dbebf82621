"""Checks the built documentation: `python tools/check_site.py site` lists what it would load from other servers.

A page is to be readable without a network, so pictures, scripts, styles and fonts are the site's own. Links that a
reader clicks may lead elsewhere.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

_LOADED_BY_LINK = {"stylesheet", "icon", "preload", "prefetch", "preconnect", "dns-prefetch", "modulepreload"}
_ELSEWHERE = re.compile(r"(?:https?:)?//")
_IN_STYLES = re.compile(r"""(?:url\(\s*["']?|@import\s+["'])((?:https?:)?//[^"')\s]+)""")


class _Loads(HTMLParser):
    """Collects the addresses that a browser loads for a page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "link" and _LOADED_BY_LINK & {*given.get("rel", "").split()}:
            self.found.append(given.get("href", ""))
        elif tag != "a":
            self.found += [given[name] for name in ("src", "srcset", "poster", "data") if name in given]
        self.found += _IN_STYLES.findall(given.get("style", ""))


def outside(site: Path) -> Iterator[tuple[str, str]]:
    """Yields the files that load something from another server, each with the address."""
    for path in sorted(site.rglob("*")):
        if path.suffix == ".html":
            page = _Loads()
            page.feed(path.read_text(encoding="utf-8"))
            found = [address for address in page.found if _ELSEWHERE.match(address)]
        elif path.suffix in (".css", ".svg"):
            found = _IN_STYLES.findall(path.read_text(encoding="utf-8"))
        else:
            found = []
        for address in found:
            yield str(path.relative_to(site)), address


def main(site: str) -> int:
    if not Path(site, "index.html").exists():
        print(f"{site} has no index.html")
        return 1
    found = [*outside(Path(site))]
    for file, address in found:
        print(f"{file} loads {address}")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
