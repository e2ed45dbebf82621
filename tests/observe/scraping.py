"""Scraping as Prometheus does it: over HTTP, in text, parsed."""

from __future__ import annotations

import asyncio
import urllib.request
from dataclasses import dataclass

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample


@dataclass(frozen=True)
class Scrape:
    samples: list[Sample]

    def value(self, name: str, **labels: str) -> float | None:
        """The one sample with this name and exactly these labels, or None."""
        found = [sample.value for sample in self.samples if sample.name == name and sample.labels == labels]
        assert len(found) <= 1, found
        return found[0] if found else None

    def by(self, label: str, name: str, **labels: str) -> dict[str, float]:
        """The samples of a name that have these labels, by one further label."""
        return {
            sample.labels[label]: sample.value
            for sample in self.samples
            if sample.name == name and labels.items() <= sample.labels.items()
        }

    def shapes(self) -> dict[str, set[str]]:
        """Each name with the names of its labels."""
        return {sample.name: set(sample.labels) for sample in self.samples}


def scrape_blocking(port: int) -> Scrape:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=15) as answer:
        text = answer.read().decode()
    return Scrape([sample for family in text_string_to_metric_families(text) for sample in family.samples])


async def scrape(port: int) -> Scrape:
    return await asyncio.to_thread(scrape_blocking, port)
