"""Who may see and change what, and what is never shown."""

from __future__ import annotations

import base64
import re

import pytest
from starlette.requests import Request

from dashboard.browsing import ORIGIN, Browser
from jobwire import Queue, connect
from jobwire.dashboard import Role, Token, Tokens, TrustedHeader, dashboard
from jobwire.dashboard.app import CHANGES, PAGES
from jobwire.dashboard.callers import caller_of
from jobwire.dashboard.forms import COOKIE, form_token
from jobwire.errors import InvalidOption
from jobwire.model import State

SECRETS = {role: f"the-secret-of-the-{role}-of-tests" for role in Role}
TOKENS = Tokens([Token(f"{role}-of-tests", role, secret) for role, secret in SECRETS.items()])


@pytest.fixture
def url(unique):
    return f"memory:{unique}"


@pytest.fixture
async def failed(queue, work, finished):
    async def handle(job):
        raise RuntimeError("login refused: password=hunter2 for redis://app:hunter3@host/0")

    job = await queue.add(
        {"user": "ann", "api_key": "k-17", "deep": [{"Authorization": "Bearer abc"}], "ssn": "078-05"}
    )
    async with work(handle):
        await finished(queue, job.id)
    return job


def as_role(role):
    return {"Authorization": f"Bearer {SECRETS[role]}"}


async def test_without_a_token_every_page_and_action_is_refused(browse, failed):
    browser = browse(auth=TOKENS, allow_actions=True)
    for path in PAGES:
        page = await browser.open(path[1:], id=failed.id)
        assert (page.status, "letters" in page.html) == (401, False)
    assert page.headers["www-authenticate"] == 'Basic realm="jobwire", charset="UTF-8"'
    for path in CHANGES:
        assert (await browser.post(f"{ORIGIN}{path}", [("store", "shop")])).status == 401
    health = (await browser.client.get("/health")).json()
    assert set(health) == {"status"}


@pytest.mark.parametrize("secret", ["wrong", "", SECRETS[Role.VIEWER] + "x"])
async def test_a_wrong_token_is_refused(browse, secret):
    basic = base64.b64encode(f"viewer-of-tests:{secret}".encode()).decode()
    for header in (f"Bearer {secret}", f"Basic {basic}", "Basic ***", f"Digest {secret}"):
        assert (await browse(auth=TOKENS, headers={"Authorization": header}).open()).status == 401


async def test_a_token_is_given_as_a_bearer_or_as_a_password(browse):
    secret = SECRETS[Role.VIEWER]
    for name, status in (("viewer-of-tests", 200), ("", 200), ("admin-of-tests", 401)):
        basic = base64.b64encode(f"{name}:{secret}".encode()).decode()
        assert (await browse(auth=TOKENS, headers={"Authorization": f"Basic {basic}"}).open()).status == status
    page = await browse(auth=TOKENS, headers=as_role(Role.VIEWER)).open()
    assert "viewer-of-tests, viewer" in page.text


async def test_a_trusted_header_names_the_user(browse):
    auth = TrustedHeader("X-User", "operator")
    assert "ann, operator" in (await browse(auth=auth, headers={"X-User": "ann"}).open()).text
    assert (await browse(auth=auth).open()).status == 401


async def test_each_role_may_do_what_it_should(browse, queue, failed):
    allowed = {
        Role.VIEWER: set(),
        Role.OPERATOR: {"retry"},
        Role.ADMIN: {"retry", "remove"},
    }
    for role, verbs in allowed.items():
        browser = browse(auth=TOKENS, allow_actions=True, headers=as_role(role))
        page = await browser.open("job", id=failed.id)
        assert {value for form in page.forms for _, value in form.buttons} == verbs
        queue_page = await browser.open("queue")
        assert (queue_page.has_form("pause"), queue_page.has_form("limits")) == (bool(verbs), role is Role.ADMIN)
        token = await _token(browser)
        fields = [("form_token", token), ("store", "shop"), ("queue", "letters"), ("id", failed.id), ("verb", "remove")]
        refused = await browser.post(f"{ORIGIN}/preview", fields)
        assert refused.status == (200 if role is Role.ADMIN else 403)
        limits = await browser.post(f"{ORIGIN}/limits", [*fields[:3], ("concurrency", "1")])
        assert limits.status == (200 if role is Role.ADMIN else 403)
    assert (await queue.get(failed.id)).state is State.FAILED


async def test_it_only_reads_unless_actions_are_allowed(browse, queue, failed):
    browser = browse()
    for path in PAGES:
        page = await browser.open(path[1:], id=failed.id, state="failed")
        assert not any(form.method == "post" for form in page.forms)
        assert "read only" in page.text
    fields = [("form_token", await _token(browser)), ("store", "shop"), ("queue", "letters"), ("id", failed.id)]
    for path in CHANGES:
        answer = await browser.post(f"{ORIGIN}{path}", [*fields, ("verb", "retry"), ("confirmed", "yes")])
        assert (answer.status, "only reads" in answer.text) == (403, True)
    assert (await queue.get(failed.id)).state is State.FAILED
    assert not await queue.admin.paused()


async def _token(browser):
    """The token of this browser's forms, as another page of the dashboard with a form would have it."""
    await browser.open()
    headers = [(name.encode(), value.encode()) for name, value in browser.client.headers.items()]
    caller = caller_of(Request({"type": "http", "headers": headers}), browser.app.state.board.auth)
    return form_token(browser.client.cookies[COOKIE], caller)


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example.com"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "none"},
        {"Content-Type": "text/plain"},
    ],
    ids=str,
)
async def test_a_form_of_another_origin_is_refused(browse, queue, failed, headers):
    browser = browse(allow_actions=True)
    page = await browser.open("job", id=failed.id)
    form = page.form("act", "retry")
    answer = await browser.post(f"{ORIGIN}/act", [*form.fields, ("verb", "retry")], **headers)
    assert answer.status in (400, 403)
    assert (await queue.get(failed.id)).state is State.FAILED


async def test_a_form_needs_the_token_of_its_browser_and_caller(browse, queue, failed):
    browser, other = browse(allow_actions=True), browse(allow_actions=True)
    page, foreign = await browser.open("job", id=failed.id), await other.open("job", id=failed.id)
    form = page.form("act", "retry")
    rest = [one for one in form.fields if one[0] != "form_token"]
    stolen = dict(foreign.form("act", "retry").fields)["form_token"]
    for token in ([], [("form_token", "")], [("form_token", stolen)], [("form_token", "ä\x00")]):
        assert (await browser.post(f"{ORIGIN}/act", [*rest, *token, ("verb", "retry")])).status == 403
    browser.client.cookies.clear()
    assert (await browser.post(f"{ORIGIN}/act", [*form.fields, ("verb", "retry")])).status == 403
    assert (await queue.get(failed.id)).state is State.FAILED


async def test_removing_needs_its_preview(browse, queue, failed):
    browser = browse(allow_actions=True)
    page = await browser.open("job", id=failed.id)
    form = page.form("preview", "remove")
    assert (await browser.post(f"{ORIGIN}/act", [*form.fields, ("verb", "remove")])).status == 400
    assert await queue.get(failed.id) is not None


async def test_a_job_that_has_completed_is_shown_before_it_runs_again(browse, queue, work, finished):
    async def handle(job):
        if job.attempts_made == 0:
            raise LookupError("user ann is gone")

    job = await queue.add({"to": "ann"}, attempts=2)
    async with work(handle):
        await finished(queue, job.id)
    browser = browse(allow_actions=True)
    page = await browser.open("job", id=job.id)
    [button] = [found for tag, found in page.elements if tag == "button" and found.get("value") == "retry"]
    assert (page.title.endswith("completed"), button.get("class")) == (True, None)
    assert "Error of an earlier attempt" in page.text
    shown = await browser.send(page, page.form("preview", "retry"), "retry")
    assert shown.title == "Retry 1 job of letters?"
    assert (await queue.get(job.id)).state is State.COMPLETED


async def test_forms_are_bounded(browse, failed):
    browser = browse(allow_actions=True)
    page = await browser.open("jobs", state="failed")
    form = page.form("preview", "retry")
    assert (await browser.send(page, form, "retry")).status == 400  # none is selected
    assert (await browser.send(page, form, "retry", id=[str(n) for n in range(1001)])).status == 400
    assert (await browser.send(page, form, "retry", id=[str(n) for n in range(3000)])).status == 400
    assert (await browser.send(page, form, "retry", id="x" * 300_000)).status == 413
    assert (await browser.send(page, form, "obliterate", verb="obliterate", id="1")).status == 400
    assert (await browser.client.get(f"{ORIGIN}/act")).status_code in (404, 405)


async def test_secrets_in_data_errors_and_raw_records_are_hidden(browse, failed):
    browser = browse(redact=["^ssn$"])
    for page in ("job", "jobs", "failures", "events"):
        shown = await browser.open(page, id=failed.id, state="failed")
        assert shown.status == 200
        for secret in ("hunter2", "hunter3", "k-17", "Bearer abc", "078-05"):
            assert secret not in shown.html, (page, secret)
    assert "(hidden)" in shown.text or "(hidden)" in (await browser.open("job", id=failed.id)).text


async def test_no_password_of_a_url_is_shown(unique):
    app = dashboard({"away": "bullmq+redis://app:hunter2@127.0.0.1:1/0"}, timeout=1)
    browser = Browser(app, {})
    try:
        for path in PAGES:
            page = await browser.open(path[1:], **({"store": "away"} if path != "/" else {}))
            assert "hunter2" not in page.html
        health = await browser.client.get("/health")
        assert "hunter2" not in health.text
    finally:
        await browser.close()
        await app.state.board.close()


async def test_every_answer_forbids_scripts_and_frames_of_others(browse, queue):
    browser = browse(auth=TOKENS, headers=as_role(Role.VIEWER))
    for path in ("", "queue", "nothing", "static/dashboard.js", "health", "job"):
        answer = await browser.open(path, queue="letters")
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert not re.search(r"\sstyle=|\son\w+=|<style|<script(?! src)", answer.html) or path.startswith("static")
    assert (await browser.open("queue")).headers["cache-control"] == "no-store"
    cookie = (await browse().open()).headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie


async def test_large_data_is_cut(browse, queue):
    wide = await queue.add({"items": list(range(5000)), "text": "x" * 100_000})
    deep = value = {}
    for _ in range(50):
        value["a"] = value = {}
    nested = await queue.add(deep)
    page = await browse().open("job", id=wide.id)
    assert len(page.html) < 250_000
    assert "of them not shown" in page.text
    assert (await browse().open("job", id=nested.id)).status == 200


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"auth": "secret"}, "must be Tokens"),
        ({"auth": Tokens([])}, "at least one token"),
        ({"redact": ["("]}, "must be a regular expression"),
        ({"timeout": -1}, "timeout"),
        ({"allow_actions": "yes"}, "allow_actions"),
    ],
    ids=range(5),
)
def test_wrong_options_are_refused(options, complaint):
    with pytest.raises(InvalidOption, match=re.escape(complaint)):
        dashboard({"shop": "memory:"}, **options)
    with pytest.raises(InvalidOption):
        dashboard({})


def test_wrong_headers_and_roles_are_refused():
    with pytest.raises(InvalidOption, match="X-Forwarded-User"):
        TrustedHeader("X User")
    with pytest.raises(InvalidOption, match="did you mean operator"):
        TrustedHeader("X-User", "operater")


async def test_the_caller_keeps_a_connection_that_it_gave(unique):
    async with connect(f"memory:{unique}") as connection, Queue("letters", connection) as queue:
        app = dashboard({"shop": connection})
        browser = Browser(app, {})
        await browser.open()
        await browser.close()
        await app.state.board.close()
        await queue.add({"still": "open"})
