"""docs/campaigns.md shows what runs."""

from __future__ import annotations

import json
import re
from pathlib import Path
from textwrap import indent
from typing import Any

from psycopg import sql

from jobwire.campaigns import CampaignService, connect
from jobwire.campaigns.sending.queues import SEND, START, queue_url
from jobwire.queue import Queue

PAGE = (Path(__file__).parents[3] / "docs" / "campaigns.md").read_text()


async def test_the_first_example_sends_a_campaign(jobwire_postgres, unique, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("channels.csv").write_text("username\n@first_channel\n@second_channel\n")
    url = jobwire_postgres.url.rpartition("/")[0] + f"/{unique}"
    code = re.search(r"```python\n(.*?)```", PAGE, re.DOTALL)[1].replace("postgresql://localhost/app", url)
    space: dict[str, Any] = {}
    exec(f"async def example():\n{indent(code, '    ')}", space)
    async with await connect(jobwire_postgres.url) as connection:
        name = sql.Identifier(unique)
        await connection.execute(sql.SQL("CREATE DATABASE {}").format(name))
        try:
            await space["example"]()
            await _check(url)
        finally:
            await connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(name))
    assert "@first_channel Hello @first_channel, meet Tea!" in capsys.readouterr().out
    lines = [json.loads(line) for line in Path("out.jsonl").read_text().splitlines()]
    assert {line["mode"] for line in lines} == {"TEST"}
    assert sorted(line["text"] for line in lines) == [
        "Hello @first_channel, meet Tea!",
        "Hello @second_channel, meet Tea!",
    ]


async def _check(url):
    async with CampaignService(url) as service:
        assert (await service.status("spring")).status == "COMPLETED"
        async with Queue(SEND, queue_url(service.settings)) as messages, Queue(START, messages.connection) as starts:
            [start] = await starts.jobs("completed")
            sent = await messages.jobs("completed")
    assert list(start.data) == ["campaignId"]
    listed = re.search(r"\| `send-message` \| (.*?) \|", PAGE)[1]
    optional = {"mediaType", "mediaUrl"}
    assert {name for job in sent for name in job.data} == set(re.findall(r"`(\w+)`", listed)) - optional
