"""Every query of the Grafana dashboard and of the alerts finds its names and labels in a scrape of a real worker."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client import CollectorRegistry

from awaiting import eventually
from jobwire import Queue, State, Unrecoverable, Worker
from jobwire.boundary import Feature
from jobwire.observe.metrics import Metrics
from jobwire.protocols import PROTOCOLS
from observe.scraping import Scrape, scrape

from .promql import selectors, unmatched

ROOT = Path(__file__).resolve().parents[2]
DASHBOARD: dict[str, Any] = json.loads((ROOT / "deploy/grafana/jobwire.json").read_text())
ALERTS: list[dict[str, Any]] = yaml.safe_load((ROOT / "deploy/prometheus/alerts.yml").read_text())["groups"]
SERVED = ["bullmq", "bridgemq", "pgboss", "monque"]
VARIABLES = {"$__rate_interval": "5m", "$__range": "3h", "$queue": ".*"}


def panel_queries(protocol: str) -> dict[str, str]:
    """The queries of the dashboard, as Grafana would send them."""
    found: dict[str, str] = {}
    for panel in DASHBOARD["panels"]:
        for target in panel["targets"]:
            query = target["expr"].replace("${protocol}", protocol)
            for variable, value in VARIABLES.items():
                query = query.replace(variable, value)
            found[f"{panel['title']} {target['refId']}"] = query
    return found


def alert_queries(protocol: str) -> dict[str, str]:
    [group] = [one for one in ALERTS if one["name"] == f"jobwire-{protocol}"]
    return {rule["alert"]: rule["expr"] for rule in group["rules"]}


async def scraped(url: str) -> Scrape:
    """A scrape of a worker that has completed, failed and retried jobs, while others run, wait or are delayed."""
    free = asyncio.Event()

    async def handle(job: Any) -> None:
        if job.data == "long":
            await free.wait()
        if job.data == "hopeless":
            raise Unrecoverable("no address")
        if job.data == "flaky" and job.attempts_made == 0:
            raise RuntimeError("try again")

    with Metrics(CollectorRegistry()) as metrics:
        port = metrics.serve(0)
        async with Queue("emails", url) as queue:
            worker = metrics.add(Worker("emails", handle, url, concurrency=2, observers=[metrics]))
            async with worker:
                for data in ("fine", "hopeless"):
                    await queue.add(data)
                await queue.add("flaky", attempts=2 if queue.capabilities.has(Feature.ATTEMPTS) else None)
                done = worker.stats
                await eventually(lambda: done.completed and done.failed and done.retried)
                await queue.add("later", delay=3600)
                for _ in range(3):
                    await queue.add("long")
                await eventually(lambda: worker.busy == 2)
                assert (await queue.counts())[State.DELAYED] >= 1
                found = await scrape(port)
                free.set()
    return found


@pytest.mark.slow
@pytest.mark.parametrize("protocol", SERVED)
def test_every_query_finds_its_names_and_labels_in_a_scrape(request: pytest.FixtureRequest, protocol: str) -> None:
    url = request.getfixturevalue(f"jobwire_{protocol}_url")
    samples = asyncio.run(scraped(url)).samples
    queries = panel_queries(protocol) | alert_queries(protocol)
    wrong = {
        f"{title}: {query}": problems
        for title, query in queries.items()
        if (problems := [one for selector in selectors(query) for one in selector.problems(samples)])
    }
    assert wrong == {}
    used = {sample.name for sample in samples for query in queries.values() for selector in selectors(query)
            if selector.matchers[0].takes(sample)}  # fmt: skip
    assert used == {sample.name for sample in samples if sample.name.startswith(f"{protocol}_")}  # none is left out


@pytest.mark.parametrize("query", [*panel_queries("bullmq").values(), *alert_queries("bullmq").values()])
def test_the_two_sides_of_an_operation_have_the_same_labels(query: str) -> None:
    assert unmatched(query) == []


async def test_a_wrong_query_is_found(jobwire_url: str) -> None:
    with Metrics(CollectorRegistry()) as metrics:
        metrics.add(Worker("emails", lambda job: None, jobwire_url))
        samples = (await scrape(metrics.serve(0))).samples

    def problems(query: str) -> list[str]:
        return [one.partition(" (")[0] for selector in selectors(query) for one in selector.problems(samples)]

    misspelled = "no sample has the name bullmq_jobs_procesed_total"
    assert problems("sum by (queue) (rate(bullmq_jobs_procesed_total[5m]))") == [misspelled]
    assert problems("sum by (quere) (bullmq_queue_length)") == ["bullmq_queue_length has no label quere"]
    assert "bullmq_queue_length has no label stat" in problems('bullmq_queue_length{stat="wait"}')
    assert problems('bullmq_queue_length{state="waiting"}') == ["no sample matches"]
    assert problems('{__name__=~"bullmq_mongo_.+"}') == ["no sample has the name bullmq_mongo_.+"]
    assert unmatched("sum by (queue) (a) / sum by (status) (b)") != []
    with pytest.raises(ValueError, match="parenthesis"):
        selectors("sum by (queue (a)")


def test_the_alerts_are_the_same_for_every_protocol() -> None:
    assert [group["name"] for group in ALERTS] == [f"jobwire-{protocol}" for protocol in SERVED]
    assert {one.slug for one in PROTOCOLS.values() if one.transports} == set(SERVED)

    def general(protocol: str) -> str:
        [group] = [one for one in ALERTS if one["name"] == f"jobwire-{protocol}"]
        text = json.dumps(group).replace(f"{protocol}_{PROTOCOLS[protocol].store}_", "P_S_")
        return text.replace(protocol, "P")

    assert {general(protocol) for protocol in SERVED} == {general("bullmq")}


def test_every_alert_has_a_severity_and_a_summary_and_a_line_in_the_documentation() -> None:
    rules = ALERTS[0]["rules"]
    for rule in rules:
        assert rule["labels"]["severity"] in ("warning", "critical")
        assert rule["annotations"].keys() == {"summary", "description"}
    page = (ROOT / "docs/observe.md").read_text()
    assert re.findall(r"^\| `(Jobwire\w+)` \|", page, re.MULTILINE) == [rule["alert"] for rule in rules]


def test_the_panels_of_the_dashboard_lie_side_by_side() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        place = panel["gridPos"]
        cells = {(x, y) for x in range(place["x"], place["x"] + place["w"])
                 for y in range(place["y"], place["y"] + place["h"])}  # fmt: skip
        assert not cells & taken, panel["title"]
        assert max(x for x, _ in cells) < 24
        taken |= cells
        assert panel["datasource"]["uid"] == "${datasource}"
        assert all(target["datasource"]["uid"] == "${datasource}" for target in panel["targets"])
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(ids) == len(set(ids))
    assert [variable["name"] for variable in DASHBOARD["templating"]["list"]] == ["datasource", "protocol", "queue"]


def test_the_dashboard_finds_the_protocols_by_their_metrics() -> None:
    [variable] = [one for one in DASHBOARD["templating"]["list"] if one["name"] == "protocol"]
    assert re.match(variable["regex"].strip("/"), "pgboss_queue_length")[1] == "pgboss"
