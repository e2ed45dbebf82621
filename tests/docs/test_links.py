"""Links lead somewhere, the navigation has every page, and the site loads nothing from other servers."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest

from .blocks import DOCS, ROOT, outside_fences, pages

NAV = re.findall(r": (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)


def slug(heading: str) -> str:
    """Returns the anchor that the site gives to a heading."""
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)|`", r"\1", heading)
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain).strip().lower())


def anchors(page: str) -> set[str]:
    text = outside_fences(page)
    return {slug(heading) for heading in re.findall(r"^#+ (.+)$", text, re.MULTILINE)}


def documented(page: str, name: str) -> bool:
    """Returns True if a page of the reference shows the object: itself, or as a member of another."""
    shown = re.findall(r"^::: (\S+)$", outside_fences(page), re.MULTILINE)
    return any(name == one or name.startswith(f"{one}.") for one in shown)


@pytest.mark.parametrize("page", pages())
def test_links_lead_to_pages_and_sections(page: str) -> None:
    wrong: list[str] = []
    for link in re.findall(r"\]\(([^)\s]+)\)", outside_fences(page)):
        if re.match(r"https?:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (DOCS / page).parent / path if path else DOCS / page
        if not target.is_file():
            wrong.append(link)
        elif anchor:
            name = str(target.resolve().relative_to(DOCS))
            if anchor not in anchors(name) and not documented(name, anchor):
                wrong.append(link)
    assert wrong == []


def test_the_navigation_has_every_page_once() -> None:
    assert sorted(NAV) == pages()


@pytest.fixture
def check_site() -> Any:
    spec = importlib.util.spec_from_file_location("check_site", ROOT / "tools" / "check_site.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_what_a_page_loads_from_elsewhere_is_found(check_site: Any, tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text(
        '<link rel="stylesheet" href="own.css"><a href="https://example.com/">a link</a><img src="own.png">'
    )
    assert check_site.main(tmp_path) == 0
    (tmp_path / "own.css").write_text("@font-face { src: url(https://fonts.example/a.woff2) }")
    (tmp_path / "page.html").write_text('<script src="//cdn.example/a.js"></script>')
    assert [*check_site.outside(tmp_path)] == [
        ("own.css", "https://fonts.example/a.woff2"),
        ("page.html", "//cdn.example/a.js"),
    ]
    assert check_site.main(tmp_path) == 1
