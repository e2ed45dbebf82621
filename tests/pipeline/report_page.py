"""A report's page taken apart: what a reader sees, and what a browser would fetch."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

_VOID = {"meta", "link", "br", "hr", "img", "input"}


class Page(HTMLParser):
    """Parses strictly: a tag that is closed out of turn, or never, fails."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.references: list[str] = []
        self.paints: set[str] = set()
        self.findings: dict[str, str] = {}
        self.texts: list[str] = []
        self.rows: list[list[str]] = []
        self._open: list[str] = []
        self._section = ""
        self._sentence = False
        self.feed(text)
        self.close()
        assert self._open == []

    @classmethod
    def at(cls, path: Path) -> Page:
        return cls(path.read_text(encoding="utf-8"))

    @property
    def text(self) -> str:
        return "\n".join(self.texts)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_startendtag(tag, attrs)
        if tag not in _VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.append(value or "")
            if name in ("href", "src", "xlink:href", "action", "srcset", "data"):
                self.references.append(value or "")
            if name in ("fill", "stroke"):
                self.paints.add(value or "")
            assert not name.startswith("on"), f"{tag} has a handler {name}={value}"
        if tag == "section":
            self._section = dict(attrs)["id"] or ""
        if tag == "tr":
            self.rows.append([])
        if tag == "td":
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag
        if tag in ("h2", "p"):
            self._sentence = False

    def handle_data(self, data: str) -> None:
        if "style" in self._open or not data.strip():
            return
        in_sentence = bool({"h2", "p"} & {*self._open}) and "section" in self._open
        if in_sentence and self._sentence:
            self.texts[-1] += data
        else:
            self.texts.append(data)
        self._sentence = in_sentence
        if "h2" in self._open:
            self.findings[self._section] = self.findings.get(self._section, "") + data
        if "td" in self._open:
            self.rows[-1][-1] += data
