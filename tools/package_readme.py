"""The README as a package index shows it, with absolute links and pictures. Used by the build: see pyproject.toml."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_LINK = re.compile(r"(?<=\]\()(?!https?:|#)([^)\s#]+)(#[^)\s]*)?(?=\))")


def with_absolute_links(text: str, documentation: str, source: str) -> str:
    """Returns the text with links to pages and pictures of docs/ on the site, and to other files in the repository."""

    def absolute(link: re.Match[str]) -> str:
        path, anchor = link[1], link[2] or ""
        if not path.startswith("docs/"):
            return f"{source}/blob/main/{path}{anchor}"
        page = path.removeprefix("docs/")
        if page.endswith(".md"):
            page = re.sub(r"(^|/)index/$", r"\1", f"{page.removesuffix('.md')}/")
        return f"{documentation}{page}{anchor}"

    return _LINK.sub(absolute, text)


class CustomMetadataHook(MetadataHookInterface):
    """Sets the field `readme` of the project."""

    def update(self, metadata: dict[str, Any]) -> None:
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        urls = metadata["urls"]
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": with_absolute_links(text, urls["Documentation"], urls["Source"]),
        }
