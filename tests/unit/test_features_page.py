"""docs/features.md lists every feature, and its table agrees with the capabilities of each protocol."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from jobwire import Feature, NotSupported, Queue

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "features.md").read_text(encoding="utf-8")
URLS = {
    "bullmq": "bullmq+redis://127.0.0.1",
    "pgboss": "pgboss+postgresql://127.0.0.1/app",
    "monque": "monque+mongodb://127.0.0.1/app",
    "bridgemq": "bridgemq+redis://127.0.0.1",
    "memory": "memory:",
}


def table() -> dict[str, dict[str, str]]:
    """Returns the cells of the table by feature and protocol."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.splitlines() if line.startswith("|")]
    start = next(number for number, row in enumerate(rows) if row[0] == "`Feature`")
    slugs = [cell.strip("`") for cell in rows[start][2:]]
    return {row[0].strip("`"): dict(zip(slugs, row[2:], strict=True)) for row in rows[start + 2 :]}


def test_the_table_has_every_feature_and_every_protocol() -> None:
    assert list(table()) == [feature.name for feature in Feature]
    assert all(list(cells) == list(URLS) for cells in table().values())


@pytest.mark.parametrize("slug", URLS)
def test_the_table_agrees_with_the_capabilities(slug: str) -> None:
    capabilities = Queue("emails", URLS[slug]).capabilities
    has = {feature.name: "yes" if capabilities.has(feature) else "–" for feature in Feature}
    assert {name: cells[slug] for name, cells in table().items()} == has


def test_the_refusal_on_the_page_is_the_real_one() -> None:
    [shown] = re.findall(r"```text\n(.*)\n```", PAGE)
    with pytest.raises(NotSupported) as refusal:
        Queue("emails", URLS["monque"]).capabilities.require(Feature.PRIORITIES)
    assert str(refusal.value) == shown
