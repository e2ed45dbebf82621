"""The dashboard in a real browser: one for all tests, from npm, over stores of every protocol."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest
import pytest_asyncio
import uvicorn

from awaiting import eventually
from conformance.recycled import new_name
from dashboard.hostile_texts import TEXTS
from dashboard.sample_lake import publish
from interop.node_process import NODE
from jobwire import Queue, Worker, connect
from jobwire.boundary import Feature
from jobwire.campaigns import CampaignService, MessageTemplate
from jobwire.campaigns.store.campaigns import NewCampaign
from jobwire.dashboard import dashboard
from jobwire.dashboard.app import PAGES
from jobwire.errors import InvalidOption, NotSupported
from jobwire.model import State
from jobwire.pipeline.report import write_report
from jobwire.serving.listening import listen, url_of
from pipeline import report_samples as samples

pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group("browser"),
    pytest.mark.asyncio(loop_scope="module"),
]
FOLDER = Path(__file__).parents[1] / "interop" / "browser"
HOSTILE = "x<img/src=x/onerror=pwned(99)>\"'"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def chromium():
    from playwright.async_api import async_playwright

    found = subprocess.run([NODE, FOLDER / "unpack.mjs"], check=True, capture_output=True, text=True, timeout=120)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=found.stdout.strip(), args=["--no-sandbox"])
        yield browser
        await browser.close()


class Served:
    """A dashboard on a port of its own, which can be stopped and started again."""

    def __init__(self, stores, **options):
        self.stores = stores
        self.options = options
        self.listening = listen("127.0.0.1", 0, open_to_all=True, variable="-")
        self.url = f"{url_of(self.listening)}/"

    async def start(self):
        self.app = dashboard(self.stores, allow_actions=True, **self.options)
        config = uvicorn.Config(self.app, log_config=None, lifespan="on", timeout_graceful_shutdown=5)
        self._server = uvicorn.Server(config)
        self._server.capture_signals = contextlib.nullcontext
        self._task = asyncio.create_task(self._server.serve(sockets=[self.listening.dup()]))
        await eventually(lambda: self._server.started)

    async def stop(self):
        self.app.state.board.stop()
        self._server.should_exit = True
        await self._task


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def filled(jobwire_valkey, jobwire_postgres, jobwire_mongo, tmp_path_factory):
    """A dashboard over a store of each protocol, with a failed job whose every text is hostile in each; over a
    database of campaigns and a lake with hostile texts too."""
    place = new_name()
    urls = {
        "memory": f"memory:{place}",
        "bullmq": f"bullmq+{jobwire_valkey.url}?prefix={place}",
        "bridgemq": f"bridgemq+{jobwire_valkey.url}?namespace={place}",
        "pgboss": f"pgboss+{jobwire_postgres.url}?schema={place}",
        "monque": f"monque+{jobwire_mongo.url.replace('/?', f'/{place}?')}&max_retries=1",
    }
    async with contextlib.AsyncExitStack() as stack:
        connections = {name: await stack.enter_async_context(connect(url)) for name, url in urls.items()}
        jobs = {name: await _fill(connection, stack) for name, connection in connections.items()}
        url = f"{jobwire_postgres.url}?schema={place}_news"
        campaigns = await stack.enter_async_context(CampaignService(url, queue_schema=f"{place}_queues"))
        campaign = await _campaign(campaigns)
        lake = _lake(tmp_path_factory.mktemp("lake"))
        served = Served({**connections, "news": campaigns}, lake=lake, timeout=30)  # the machine may be busy
        await served.start()
        yield SimpleNamespace(served=served, connections=connections, jobs=jobs, campaign=campaign)
        await served.stop()
        served.listening.close()


async def _fill(connection, stack):
    """Fills a queue whose name, job name, job id, data, log, error, schedule and worker are hostile, as far as the
    protocol takes such texts. The worker stays connected."""

    async def handle(job):
        for text in TEXTS:
            await job.log(text)
        raise ValueError(" ".join(TEXTS))

    for name in (HOSTILE, "letters"):
        with contextlib.suppress(InvalidOption):
            async with Queue(name, connection) as queue:
                named = {"name": TEXTS[0]} if queue.capabilities.has(Feature.JOB_NAMES) else {}
                data = {text: text for text in TEXTS}
                try:
                    job = await queue.add(data, id=HOSTILE, **named)
                except (InvalidOption, NotSupported):
                    job = await queue.add(data, **named)
                await stack.enter_async_context(_worker(name, handle, connection))
                await eventually(lambda queue=queue, job=job: _is(queue, job.id, State.FAILED))
                with contextlib.suppress(InvalidOption):
                    await queue.schedule(TEXTS[1], cron="0 3 * * *", data={"text": TEXTS[0]})
                return name, job.id
    raise AssertionError("no name was taken")


def _worker(queue, handle, connection):
    for hostile in ({"name": HOSTILE, "worker_id": HOSTILE}, {"worker_id": HOSTILE}, {"name": HOSTILE}):
        with contextlib.suppress(InvalidOption, NotSupported):
            return Worker(queue, handle, connection, **hostile)
    return Worker(queue, handle, connection)


async def _campaign(campaigns):
    """A running campaign to channels of which one is blocked. Returns it."""
    await campaigns.init()
    async with campaigns._connections.use() as connection:
        store = campaigns._store
        batch = await store.batches.add(connection, TEXTS[1])
        template = await store.templates.add(connection, TEXTS[2], MessageTemplate(" ".join(TEXTS[:7])))
        channel = await store.channels.add(connection, "@hostile", TEXTS[0])
        await store.batches.add_channels(connection, batch.id, [channel.id])
        await store.channels.block(connection, channel.id, " ".join(TEXTS))
        new = NewCampaign(" ".join(TEXTS), batch.id, template.id, {}, "TEST", 60, 0)
        campaign = await store.campaigns.add(connection, new)
        await store.campaigns.start(connection, campaign.id)
        await store.campaigns.pause(connection, campaign.id, " ".join(TEXTS))
    return campaign


def _lake(folder):
    at = datetime(2030, 1, 7, 9, tzinfo=UTC)
    row = {"store": TEXTS[0], "queue": HOSTILE, "name": TEXTS[1], "hour": at, "completed": 5, "failed": 2, "runs": 7}
    failure = {"day": at.date(), "error_class": TEXTS[2], "sample_error": " ".join(TEXTS), "failures": 2, "jobs": 2}
    latency = {"wait_sketch": '{"100": 7}', "run_sketch": '{"200": 7}'}
    tables = {"throughput_hourly": [row], "latency_hourly": [row | latency], "failures_daily": [row | failure]}
    return publish(folder / "lake", tables)


async def _is(queue, job_id, state):
    found = await queue.get(job_id)
    return found is not None and found.state is state


@pytest_asyncio.fixture(loop_scope="module")
async def tab(chromium):
    """A page whose problems fail the test: errors on the console, and texts that ran as script."""
    context = await chromium.new_context(viewport={"width": 1280, "height": 800})
    page = await context.new_page()
    problems = []
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.problems = problems
    await context.expose_function("pwned", lambda *numbers: problems.append(f"a text ran as script: {numbers}"))
    yield page
    await context.close()
    assert problems == []


def _pages(filled, store):
    queue, job = filled.jobs[store]
    has = filled.connections[store].backend.capabilities.has
    missing = {"/events": Feature.EVENTS, "/flow": Feature.FLOWS}
    for path in (*PAGES, "/health"):
        match path:
            case "/" | "/campaigns" | "/health":
                yield path[1:], {}
            case "/campaign":
                yield path[1:], {"store": "news", "id": filled.campaign.id}
            case "/history":
                yield path[1:], {}
                yield path[1:], {"queue": HOSTILE}
            case _ if path not in missing or has(missing[path]):
                yield path[1:], {"store": store, "queue": queue, "id": job, "state": "failed"}
            case _:
                pass


_CURRENT_TAB_IN_VIEW = """() => {
    const tab = document.querySelector(".tabs [aria-current]");
    return !tab || (tab.getBoundingClientRect().left >= 0 && tab.getBoundingClientRect().right <= innerWidth);
}"""


async def _settled(page):
    """Waits for the stream of the page, if it has one."""
    await page.wait_for_selector("body:not([data-stream]), #stream.on", state="attached")


def _url(base, path, query):
    from urllib.parse import quote, urlencode

    return f"{base}{path}?{urlencode(query, quote_via=quote)}" if query else f"{base}{path}"


@pytest.mark.parametrize("store", ["memory", "bullmq", "bridgemq", "pgboss", "monque"])
async def test_hostile_texts_do_nothing_on_any_page(filled, tab, store):
    for path, query in _pages(filled, store):
        answer = await tab.goto(_url(filled.served.url, path, query))
        assert answer.status == 200, (path, await tab.text_content("h1"))
        await _settled(tab)
        assert await tab.locator("main img, main iframe, main script").count() == 0
        if path == "job":
            assert (filled.jobs[store][1] == HOSTILE) == (filled.connections[store].capabilities.ids == "any")
        if path == "workers" and filled.connections[store].capabilities.has(Feature.WORKERS):
            assert "1 worker is connected" in await tab.text_content("h1")
        if path == "jobs":  # selected jobs, and then all: both previews show the job
            for form in ("form#bulk", "form.bulk:not(#bulk)"):
                await tab.check("input[name=id][type=checkbox]")
                await tab.click(f"{form} button[value=remove]")
                await tab.wait_for_url("**/preview")
                assert "Remove 1 job of" in await tab.text_content("h1")
                assert await tab.locator("main img, main iframe, main script").count() == 0
                await tab.go_back()


@pytest.mark.parametrize(("scheme", "width"), [("light", 390), ("dark", 1280)])
async def test_pages_are_accessible_and_fit_a_phone_and_a_desk(filled, chromium, scheme, width):
    axe = (FOLDER / "node_modules" / "axe-core" / "axe.min.js").read_text()
    context = await chromium.new_context(
        viewport={"width": width, "height": 800}, color_scheme=scheme, reduced_motion="reduce", bypass_csp=True
    )
    page = await context.new_page()
    found = []
    for path, query in _pages(filled, "memory"):
        await page.goto(_url(filled.served.url, path, query))
        await _settled(page)
        wider = await page.evaluate("document.documentElement.scrollWidth - innerWidth")
        if wider > 0:
            found.append((path, f"{wider} px wider than the screen"))
        await page.evaluate(axe)
        results = await page.evaluate("axe.run()")
        if not await page.evaluate(_CURRENT_TAB_IN_VIEW):
            found.append((path, "the current tab is out of view"))
        for one in results["violations"]:
            found += [(path, one["id"], node["html"][:150], node["failureSummary"][-200:]) for node in one["nodes"]]
    await context.close()
    assert found == []


async def test_a_count_changes_by_itself_and_after_a_restart_of_the_server(chromium):
    async with connect(f"memory:{new_name()}") as connection, Queue("letters", connection) as queue:
        await queue.add({"n": 1})
        served = Served({"shop": connection})
        await served.start()
        context = await chromium.new_context()
        page = await context.new_page()
        try:
            await page.goto(f"{served.url}queue?store=shop&queue=letters")
            assert "1 job waits" in await page.text_content("h1")
            await page.wait_for_selector("#stream.on")
            await queue.add({"n": 2})
            await page.wait_for_selector("h1:has-text('2 jobs wait')")
            await page.wait_for_selector(".tabs b.waiting:text-is('2')")
            assert "2 jobs wait" in await page.title()
            await served.stop()
            await page.wait_for_selector("#stream.off")
            await queue.add({"n": 3})
            await served.start()
            await page.wait_for_selector("#stream.on")
            await page.wait_for_selector("h1:has-text('3 jobs wait')")
        finally:
            await context.close()
            await served.stop()
            served.listening.close()


async def test_counts_change_by_themselves_on_every_protocol(filled, chromium):
    context = await chromium.new_context()
    context.set_default_timeout(90_000)  # a look that takes long is followed by a break of up to a minute

    async def watch(store, connection):
        name, _ = filled.jobs[store]
        page = await context.new_page()
        await page.goto(_url(filled.served.url, "jobs", {"store": store, "queue": name, "state": "delayed"}))
        await page.wait_for_selector("#stream.on")
        before = int(await page.text_content(".tabs b.delayed"))
        async with Queue(name, connection) as queue:
            await queue.add({"n": 1}, delay=3600)
        await page.wait_for_selector(f".tabs b.delayed:text-is('{before + 1}')")
        await page.wait_for_selector(f"h1:has-text('{before + 1} delayed job')")
        await page.close()

    try:
        await asyncio.gather(*(watch(store, one) for store, one in filled.connections.items()))
    finally:
        await context.close()


async def test_a_job_is_found_and_retried_with_the_keyboard(chromium, tab):
    async def fail(job):
        raise ValueError("no such user")

    async with connect(f"memory:{new_name()}") as connection, Queue("letters", connection) as queue:
        jobs = [await queue.add({"n": number}) for number in range(3)]
        async with Worker("letters", fail, connection):
            for job in jobs:
                await eventually(lambda job=job: _is(queue, job.id, State.FAILED))
        served = Served({"shop": connection})
        await served.start()
        try:
            await tab.goto(served.url)
            await tab.keyboard.press("j")
            await tab.keyboard.press("Enter")
            await tab.wait_for_url("**/queue?**")
            await tab.goto(f"{served.url}jobs?store=shop&queue=letters&state=failed")
            await tab.keyboard.press("/")
            assert await tab.evaluate("document.activeElement.name") == "error"
            await tab.keyboard.press("Escape")
            await tab.keyboard.press("?")
            assert await tab.locator("#help").is_visible()
            await tab.keyboard.press("Escape")
            await tab.keyboard.press("j")
            await tab.keyboard.press("r")  # the row that has the focus, without a selection
            await tab.wait_for_url("**/preview")
            assert await tab.text_content("h1") == "Retry 1 job of letters?"
            await tab.go_back()
            await tab.wait_for_selector("tr[data-row]")
            for box in await tab.locator("input[name=id][type=checkbox]:checked").all():
                await box.uncheck()
            for key in ("j", "x", "j", "k"):
                await tab.keyboard.press(key)
            chosen = await tab.text_content("tr:focus-within td.id")
            assert await tab.text_content("#all-words") == "1 selected:"
            await tab.keyboard.press("r")
            await tab.wait_for_url("**/preview")
            assert await tab.text_content("h1") == "Retry 1 job of letters?"
            await tab.click("main button.main")
            await tab.wait_for_selector("text=Retried 1 job.")
            assert await _is(queue, chosen.strip(), State.WAITING)
            await tab.goto(f"{served.url}job?store=shop&queue=letters&id={next(j.id for j in jobs if j.id != chosen)}")
            await tab.keyboard.press("r")
            await tab.wait_for_selector("text=Retried 1 job.")
        finally:
            await tab.goto("about:blank")
            await served.stop()
            served.listening.close()


async def test_what_is_selected_and_open_stays_so_when_parts_change(tab):
    async with connect(f"memory:{new_name()}") as connection, Queue("letters", connection) as queue:
        await queue.add({"n": 1})
        served = Served({"shop": connection})
        await served.start()
        try:
            await tab.goto(f"{served.url}jobs?store=shop&queue=letters")
            await tab.wait_for_selector("#stream.on")
            await tab.check("input[name=id][type=checkbox]")
            await queue.add({"n": 2})
            await tab.wait_for_selector("tr[data-row]:nth-child(2)")
            assert await tab.locator("input[name=id][type=checkbox]:checked").count() == 1
            assert await tab.text_content("#all-words") == "1 selected:"
            await tab.evaluate("getSelection().selectAllChildren(document.querySelector('td.data'))")
            await queue.add({"n": 3})
            await tab.wait_for_selector(".tabs b.waiting:text-is('3')")
            assert await tab.evaluate("getSelection().toString()") == '{"n": 1}'
            await tab.evaluate("getSelection().removeAllRanges()")
            await tab.wait_for_selector("tr[data-row]:nth-child(3)")
        finally:
            await tab.goto("about:blank")
            await served.stop()
            served.listening.close()


async def test_a_log_stays_at_its_end_and_a_removed_job_can_no_longer_be_used(tab):
    async with connect(f"memory:{new_name()}") as connection, Queue("letters", connection) as queue:
        _, job = await queue.add({"n": 1}), await queue.add({"n": 2})
        for number in range(99):
            await queue.admin.log(job.id, f"line {number}")
        served = Served({"shop": connection})
        await served.start()
        try:
            await tab.goto(f"{served.url}job?store=shop&queue=letters&id={job.id}")
            await tab.wait_for_selector("#stream.on")
            assert await _line_is_seen(tab, "line 98")
            await queue.admin.log(job.id, "the newest line")
            await tab.wait_for_selector(".tail:has-text('the newest line')")
            assert await _line_is_seen(tab, "the newest line")
            await queue.admin.remove(job.id)
            await tab.wait_for_selector("#content[inert]")
            assert "letters has no job" in await tab.text_content("h1")
        finally:
            await tab.goto("about:blank")
            await served.stop()
            served.listening.close()


async def _line_is_seen(page, line):
    """Returns True if the last line of the log is this one, and inside of the part that is seen."""
    return await page.evaluate(
        """(line) => {
            const tail = document.querySelector(".tail");
            const end = tail.querySelector("pre").getBoundingClientRect().bottom;
            return tail.scrollHeight > tail.clientHeight && tail.innerText.trim().endsWith(line)
                && Math.abs(end - tail.getBoundingClientRect().bottom) < 2;
        }""",
        line,
    )


async def test_hidden_tabs_leave_the_connections_to_others_and_are_up_to_date_when_they_are_shown_again(chromium):
    async with connect(f"memory:{new_name()}") as connection, Queue("letters", connection) as queue:
        await queue.add({"n": 1})
        served = Served({"shop": connection})
        await served.start()
        context = await chromium.new_context()
        try:
            pages = []
            for _ in range(8):  # a browser has six connections to a server
                for page in pages[-1:]:
                    await _set_hidden(page, "true")
                pages.append(await context.new_page())
                await pages[-1].goto(f"{served.url}queue?store=shop&queue=letters", timeout=10_000)
                await pages[-1].wait_for_selector("#stream.on", timeout=10_000)
            await queue.add({"n": 2})
            await pages[-1].wait_for_selector("h1:has-text('2 jobs wait')")
            assert "1 job waits" in await pages[0].text_content("h1")
            await _set_hidden(pages[0], "false")
            await pages[0].wait_for_selector("h1:has-text('2 jobs wait')")
        finally:
            await context.close()
            await served.stop()
            served.listening.close()


async def _set_hidden(page, hidden):
    """Hides or shows the page as a browser with a window does. Without one, all pages count as visible."""
    await page.evaluate(
        f"Object.defineProperty(document, 'hidden', {{ value: {hidden}, configurable: true }});"
        "document.dispatchEvent(new Event('visibilitychange'))"
    )


async def test_the_progress_of_a_campaign_changes_by_itself_and_it_is_cancelled(jobwire_postgres, tab):
    place = new_name()
    url = f"{jobwire_postgres.url}?schema={place}"
    async with CampaignService(url, queue_schema=f"{place}_queues") as campaigns:
        campaign = await _campaign(campaigns)
        served = Served({"news": campaigns})
        await served.start()
        try:
            await tab.goto(_url(served.url, "campaign", {"store": "news", "id": campaign.id}))
            await tab.wait_for_selector("#stream.on")
            await campaigns.resume(campaign.id)
            await tab.wait_for_selector(".acts button[value=pause]")
            await tab.click("button[value=cancel]")
            assert "?" in await tab.text_content("h1")
            await tab.click("main button.danger")
            await tab.wait_for_selector("text=The campaign is cancelled.")
            assert (await campaigns.status(campaign.id)).status == "CANCELLED"
        finally:
            await tab.goto("about:blank")
            await served.stop()
            served.listening.close()


async def test_without_javascript_a_job_is_retried_by_its_form(chromium, filled):
    queue_name, job = filled.jobs["bullmq"]
    context = await chromium.new_context(java_script_enabled=False)
    page = await context.new_page()
    try:
        query = {"store": "bullmq", "queue": queue_name, "state": "failed"}
        await page.goto(_url(filled.served.url, "jobs", query))
        await page.check("input[name=id][type=checkbox]")
        await page.click("form#bulk button[value=retry]")
        await page.click("main button.main")
        assert "Retried 1 job." in await page.text_content(".said")
    finally:
        await context.close()
    async with Queue(queue_name, filled.connections["bullmq"]) as queue:
        await eventually(lambda: _ran_twice(queue, job))


async def _ran_twice(queue, job_id):
    return (await queue.get(job_id)).attempts_made == 2


IN_A_PHONE = """() => {
  const shown = node => node.getClientRects().length > 0
  const sizes = [...document.querySelectorAll("svg text")].filter(shown).map(text =>
    parseFloat(getComputedStyle(text).fontSize) * text.getScreenCTM().a)
  const tables = [...document.querySelectorAll(".table")].filter(shown)
  const wide = tables.filter(table => table.scrollWidth > table.clientWidth + 1)
  const hint = table => getComputedStyle(table, "::before").content
  return {
    wider: document.documentElement.scrollWidth - innerWidth,
    charts: [".wide", ".narrow"].map(kind => [...document.querySelectorAll(kind)].some(shown)),
    smallest: Math.min(...sizes),
    tables: tables.length,
    wide: wide.length,
    unmarked: wide.filter(table => !hint(table).includes("scrolls")).map(table => table.ariaLabel),
  }
}"""


async def test_a_report_on_a_phone_has_readable_charts_and_tables_that_show_that_they_scroll(chromium, tmp_path):
    page_of_week = await asyncio.to_thread(write_report, samples.week(), tmp_path, title="Queues", period=samples.WEEK)
    context = await chromium.new_context(viewport={"width": 360, "height": 740})
    page = await context.new_page()
    await page.goto(page_of_week.as_uri())
    found = await page.evaluate(IN_A_PHONE)
    await context.close()
    assert (found["wider"], found["charts"], found["unmarked"]) == (0, [False, True], [])
    assert found["wide"] > 0
    assert found["smallest"] >= 8, found
