"""Every request with every role: what is allowed, and what is not."""

from __future__ import annotations

import logging

import pytest

from campaigns.api.clients import LOWEST, SECRETS, TOKENS, client_of
from jobwire.campaigns import CampaignService
from jobwire.campaigns.api import Role, campaign_api

NEW = {"name": "n", "batch": "b", "template": "t", "rate": 1}
BODIES = {
    ("POST", "/campaigns"): {"json": NEW},
    ("PUT", "/campaigns/{campaign}/rate"): {"json": {"rate": 1}},
    ("POST", "/templates"): {"json": {"name": "n", "content": "c"}},
    ("POST", "/channels/import"): {"content": "username\n@news\n", "headers": {"Content-Type": "text/csv"}},
}
ALLOWED = {Role.VIEWER: 8, Role.OPERATOR: 14, Role.ADMIN: 17}


@pytest.fixture
async def empty(jobwire_postgres, unique):
    """The API over a database without tables: a request that is let through gets 503."""
    async with CampaignService(jobwire_postgres.url, schema=unique, queue_schema=f"{unique}_queues") as service:
        yield campaign_api(service, tokens=TOKENS)


@pytest.mark.parametrize(("method", "path"), LOWEST, ids=lambda part: part.replace("/", "|"))
@pytest.mark.parametrize("role", Role)
async def test_a_role_may_do_what_it_or_a_lower_one_is_for(empty, role, method, path):
    async with client_of(empty, role) as client:
        given = await client.request(method, path, **BODIES.get((method, path), {}))
    if list(Role).index(role) >= list(Role).index(LOWEST[method, path]):
        assert (given.status_code, given.json()) == (
            503, {"error": "the database does not have the tables of campaigns: run `jobwire campaign init`"},
        )  # fmt: skip
    else:
        needed = f"this needs the role {LOWEST[method, path]}; the token '{role}-of-tests' has the role {role}"
        assert (given.status_code, given.json()) == (403, {"error": needed})


def test_the_table_has_every_request_and_the_page_names_its_role(empty):
    paths = empty.openapi()["paths"]
    found = {(method.upper(), path): each["x-role"] for path, of in paths.items() for method, each in of.items()}
    assert found == LOWEST
    for role, number in ALLOWED.items():
        assert sum(role.includes(lowest) for lowest in LOWEST.values()) == number


@pytest.mark.parametrize(("method", "path"), LOWEST, ids=lambda part: part.replace("/", "|"))
async def test_without_a_known_token_nothing_is_read(empty, method, path):
    """Also not the body, which is not JSON here."""
    wrong = "Bearer a-wrong-secret-of-the-tests"
    headers = [None, wrong, "Bearer", "Bearer ", f"Basic {SECRETS[Role.ADMIN]}", SECRETS[Role.ADMIN],
               f"Bearer {SECRETS[Role.ADMIN]}x", f"Bearer {SECRETS[Role.ADMIN][:-1]}"]  # fmt: skip
    async with client_of(empty) as client:
        for header in headers:
            given = await client.request(
                method, path, content=b"{", headers={"Authorization": header} if header is not None else {}
            )
            assert given.status_code == 401, header
            assert given.headers["www-authenticate"] == "Bearer"
            assert given.json() == {
                "error": "the token is unknown" if header is not None else "a bearer token is needed"
            }


async def test_changes_are_logged_with_the_name_of_the_token_and_never_the_token(empty, caplog):
    with caplog.at_level(logging.DEBUG):
        async with client_of(empty, Role.OPERATOR) as client:
            await client.post("/campaigns/spring%0Aforged/start")
            await client.get("/campaigns")
    asked = [record.getMessage() for record in caplog.records if "asks for" in record.getMessage()]
    assert asked == [r"operator-of-tests (operator) asks for POST '/campaigns/spring\nforged/start'"]
    assert not any(secret in caplog.text for secret in SECRETS.values())


async def test_the_scheme_is_read_in_upper_and_lower_case(empty):
    async with client_of(empty) as client:
        given = await client.get("/campaigns", headers={"Authorization": f"bEARER  {SECRETS[Role.VIEWER]} "})
    assert given.status_code == 503
