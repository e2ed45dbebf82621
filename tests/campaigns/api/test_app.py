"""The application: its page, errors that are not the caller's, and its life in other applications."""

from __future__ import annotations

import dataclasses
import re
import socket
import subprocess
import sys

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from campaigns.api.clients import TOKENS, client_of
from jobwire.campaigns import (
    Batch,
    Campaign,
    CampaignReport,
    CampaignService,
    Channel,
    Delivery,
    ImportReport,
    Preview,
    Template,
)
from jobwire.campaigns.api import Role, campaign_api, responses
from jobwire.campaigns.channels_import import BadLine
from jobwire.campaigns.report import Counts, Reason


@pytest.mark.parametrize(
    ("shown", "row"),
    [
        (responses.BadLineShown, BadLine), (responses.BatchShown, Batch), (responses.CampaignShown, Campaign),
        (responses.ChannelShown, Channel), (responses.CountsShown, Counts), (responses.DeliveryShown, Delivery),
        (responses.ImportShown, ImportReport), (responses.PreviewShown, Preview), (responses.ReasonShown, Reason),
        (responses.TemplateShown, Template),
    ],
)  # fmt: skip
def test_a_response_has_every_field_of_its_row(shown, row):
    assert list(shown.model_fields) == [field.name for field in dataclasses.fields(row)]


def test_a_report_has_every_field_and_the_rate():
    fields = [field.name for field in dataclasses.fields(CampaignReport)]
    assert list(responses.ReportShown.model_fields) == [*fields, "per_minute"]


async def test_the_page_describes_every_request_and_needs_no_token():
    async with client_of(campaign_api("postgresql://localhost/app", tokens=TOKENS)) as client:
        assert "swagger" in (await client.get("/docs")).text
        page = (await client.get("/openapi.json")).json()
    requests = [(path, each) for path, of in page["paths"].items() for each in of.values()]
    assert len(requests) == 17
    for path, each in requests:
        assert each["description"], path
        assert each["security"] == [{"HTTPBearer": []}], path
        assert {"401", "403", "404", "409", "422", "503"} <= set(each["responses"]), path
        assert each["responses"]["422"]["content"]["application/json"]["schema"]["$ref"].endswith("/Failed")
    for model in ("NewCampaign", "NewTemplate", "Failed"):
        assert page["components"]["schemas"][model]["examples"], model
    imported = page["paths"]["/channels/import"]["post"]["requestBody"]["content"]["text/csv"]
    assert imported["example"].startswith("username,category\n")


MISSING = """
import sys
sys.modules[sys.argv[1]] = None
from jobwire.cli import main
sys.exit(main(["campaign", "serve", "--url", "postgresql://localhost/app"]))
"""


@pytest.mark.parametrize("package", ["fastapi", "uvicorn"])
def test_a_package_that_is_not_installed_is_named_with_its_extra(package):
    ended = subprocess.run([sys.executable, "-c", MISSING, package], check=False, capture_output=True, text=True)
    assert ended.returncode == 1
    assert re.fullmatch(r"jobwire: the HTTP API.* needs more packages: pip install 'jobwire\[web\]'\n", ended.stderr)


async def test_an_unavailable_database_is_answered_with_a_time_to_try_again(caplog):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and does not listen
        url = f"postgresql://ann:secret-word@127.0.0.1:{taken.getsockname()[1]}/app"
        app = campaign_api(url, tokens=TOKENS)
        async with client_of(app, Role.ADMIN) as client:
            for method, path in [("GET", "/campaigns"), ("POST", "/campaigns/spring/start")]:
                given = await client.request(method, path)
                assert (given.status_code, given.headers["retry-after"]) == (503, "5")
                assert given.json()["error"].startswith("the database is unavailable")
        await app.state.opened.close()
    assert "Connection refused" in caplog.text
    assert "secret-word" not in caplog.text


async def test_an_error_of_ours_is_logged_and_not_shown(service, monkeypatch, caplog):
    async def break_down(*_, **__):
        raise RuntimeError("a detail of ours")

    monkeypatch.setattr(service, "campaigns", break_down)
    app = campaign_api(service, tokens=TOKENS)
    async with client_of(app, Role.VIEWER, raise_app_exceptions=False) as client:
        given = await client.get("/campaigns")
    assert (given.status_code, given.json()) == (500, {"error": "internal error; the server's log has the details"})
    assert "a detail of ours" in caplog.text


async def test_it_is_mounted_in_another_application(jobwire_postgres, schemas, new):
    """It gets no signal at the start there, and opens its service at the first request."""
    url = f"{jobwire_postgres.url}?schema={schemas['schema']}"
    api = campaign_api(url, tokens=TOKENS)
    async with client_of(Starlette(routes=[Mount("/broadcasts", api)]), Role.ADMIN) as client:
        made = await client.post("/broadcasts/campaigns", json=new())
        assert made.status_code == 201
        location = made.headers["location"]
        assert location.startswith("/broadcasts/campaigns/")
        assert (await client.get(location)).json() == made.json()
        assert (await client.get("/broadcasts/openapi.json")).json()["servers"] == [{"url": "/broadcasts"}]
    await api.state.opened.close()


async def test_without_tokens_every_caller_is_an_admin(service, unique):
    async with client_of(campaign_api(service, tokens=None)) as client:
        assert (await client.post("/templates", json={"name": unique, "content": "x"})).status_code == 201


async def test_a_service_that_was_closed_is_answered_as_unavailable(jobwire_postgres, schemas):
    async with CampaignService(jobwire_postgres.url, **schemas) as closed:
        app = campaign_api(closed, tokens=TOKENS)
    async with client_of(app, Role.ADMIN) as client:
        assert (await client.get("/campaigns")).status_code == 503


async def test_a_campaign_of_another_program_that_lacks_a_parameter_has_no_preview(api, database, unique):
    await database.execute(
        "INSERT INTO campaigns (id, name, batch_id, template_id, delivery_rate, params)"
        " SELECT %s, %s, b.id, t.id, 1, 'null' FROM batches b, templates t WHERE b.name = 'news' AND t.name = 'hello'",
        [unique, unique],
    )
    given = await api.get(f"/campaigns/{unique}/preview")
    assert (given.status_code, given.json()["field"]) == (422, "params.product")
