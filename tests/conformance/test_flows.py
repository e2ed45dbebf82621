"""Trees of jobs: a parent runs when its children are done, and knows what became of them."""

from __future__ import annotations

import pytest

from capable import protocols_with
from jobwire.boundary import Feature
from jobwire.errors import InvalidOption, JobFailed, JobNotFound, Unrecoverable, WaitForChildren, WrongState
from jobwire.flow import Flow, FlowJob
from jobwire.model import JobKey, State
from jobwire.options import Parent, Unique
from jobwire.queue import Queue
from jobwire.worker import Worker

# Where there are flows; what the other protocols say instead is in test_facets.
pytestmark = pytest.mark.parametrize("url", protocols_with(Feature.FLOWS), indirect=True)
PAGES = "pages"


@pytest.fixture
async def flow(connection):
    async with Flow(connection) as flow:
        yield flow


@pytest.fixture
def read(connection):
    """Workers of the pages: a page that is torn fails for good."""

    async def handle(job):
        if job.data == "torn":
            raise Unrecoverable("page is torn")
        return f"read {job.data}"

    return lambda: Worker(PAGES, handle, connection)


def _book(*pages, **options):
    return FlowJob("letters", "book", children=[FlowJob(PAGES, page) for page in pages], **options)


async def _values(job):
    return sorted((await job.children_values()).values())


async def test_a_parent_runs_when_its_children_are_done_and_reads_their_results(flow, work, read):
    tree = await flow.add(_book(1, 2, 3))
    assert tree.job.state is State.WAITING_CHILDREN
    assert [child.job.state for child in tree.children] == [State.WAITING] * 3
    async with work(_values), read():
        assert await tree.job.wait(10) == ["read 1", "read 2", "read 3"]


async def test_a_tree_is_read_as_it_was_added(flow):
    chapter = FlowJob(PAGES, "chapter", children=[FlowJob(PAGES, "page 1"), FlowJob("letters", "page 2")])
    tree = await flow.add(FlowJob("letters", "book", children=[chapter, FlowJob(PAGES, "cover")]))
    found = await flow.get("letters", tree.job.id)
    assert found.job.data == "book"
    chapters = {child.job.data: child for child in found.children}
    assert sorted(chapters) == ["chapter", "cover"]
    assert {child.job.data: child.job.queue for child in chapters["chapter"].children} == {
        "page 1": PAGES,
        "page 2": "letters",
    }
    page = chapters["chapter"].children[0].job
    assert (page.parent, found.job.parent) == (JobKey(PAGES, chapters["chapter"].job.id), None)
    assert chapters["cover"].job.parent == JobKey("letters", tree.job.id)
    assert (await flow.get("letters", tree.job.id, depth=1)).children == ()
    assert len((await flow.get("letters", tree.job.id, depth=2, width=1)).children) == 1
    with pytest.raises(JobNotFound):
        await flow.get("letters", "nobody")


async def test_several_levels_run_from_the_leaves_up(flow, connection, eventually):
    order = []

    async def handle(job):
        order.append(job.data)

    tree = await flow.add(
        FlowJob(PAGES, "book", children=[FlowJob(PAGES, "chapter", children=[FlowJob(PAGES, "page")])])
    )
    async with Worker(PAGES, handle, connection):
        await tree.job.wait(10)
    assert order == ["page", "chapter", "book"]


async def test_children_are_told_apart_by_what_became_of_them(flow, queue, work, read, eventually):
    pages = [
        FlowJob(PAGES, 1, id="good"),
        FlowJob(PAGES, "torn", id="ignored", on_failure="ignore"),
        FlowJob(PAGES, 2, id="later", delay=600),
    ]
    tree = await flow.add(FlowJob("letters", "book", children=pages))
    async with read():

        async def both_done():
            children = await queue.children(tree.job.id)
            return children if len(children.pending) == 1 else None

        children = await eventually(both_done)
    assert children.values == {JobKey(PAGES, "good"): "read 1"}
    assert children.ignored == {JobKey(PAGES, "ignored"): "page is torn"}
    assert children.pending == (JobKey(PAGES, "later"),)
    assert (children.failed, len(children)) == ((), 3)


async def test_a_failed_child_fails_its_parent_if_so_asked(flow, queue, work, read, finished):
    torn = FlowJob(PAGES, "torn", id="torn", on_failure="fail")
    tree = await flow.add(FlowJob("letters", "book", children=[torn, FlowJob(PAGES, 2, delay=600)]))
    async with work(_values), read():
        parent = await finished(queue, tree.job.id)
    assert parent.state is State.FAILED
    assert parent.error.endswith(f"{PAGES}:torn failed")
    assert (await queue.children(tree.job.id)).failed == (JobKey(PAGES, "torn"),)


async def test_a_failed_child_lets_its_parent_run_at_once_if_so_asked(flow, work, read):
    seen = []

    async def handle(job):
        children = await job.children()
        seen.append((list(children.ignored.values()), len(children.pending)))

    torn = FlowJob(PAGES, "torn", on_failure="continue")
    tree = await flow.add(FlowJob("letters", "book", children=[torn, FlowJob(PAGES, 2, delay=600)]))
    async with work(handle), read():
        with pytest.raises(JobFailed, match="children that have not finished"):
            await tree.job.wait(10)
    assert seen == [(["page is torn"], 1)]


async def test_a_failed_child_is_forgotten_if_so_asked(flow, queue, work, read):
    tree = await flow.add(
        FlowJob("letters", "book", children=[FlowJob(PAGES, "torn", on_failure="remove"), FlowJob(PAGES, 2)])
    )
    async with work(_values), read():
        assert await tree.job.wait(10) == ["read 2"]
    assert len(await queue.children(tree.job.id)) == 1


async def test_a_parent_waits_for_a_failed_child_to_be_retried(flow, connection, queue, work, eventually):
    failing = True

    async def handle(job):
        if failing:
            raise Unrecoverable("not yet")
        return "at last"

    tree = await flow.add(_book(1))
    child = tree.children[0].job
    async with Queue(PAGES, connection) as pages, work(_values), Worker(PAGES, handle, connection):

        async def failed():
            return (await pages.get(child.id)).state is State.FAILED

        await eventually(failed)
        assert (await queue.get(tree.job.id)).state is State.WAITING_CHILDREN
        failing = False
        await pages.admin.retry(child.id)
        assert await tree.job.wait(10) == ["at last"]


async def test_a_handler_adds_children_and_is_run_again_when_they_are_done(flow, queue, work, read, eventually):
    runs = []

    async def handle(job):
        runs.append(job.attempts_made)
        if not len(await job.children()):
            await job.add_children(FlowJob(PAGES, 1), FlowJob(PAGES, "torn", on_failure="ignore"))
        await job.wait_for_children()
        return await _values(job)

    job = await queue.add("book")
    async with work(handle) as worker:
        await eventually(lambda: worker.stats.parked == 1)
        async with read():
            assert await job.wait(10) == ["read 1"]
    assert runs == [0, 0]
    assert (await queue.get(job.id)).attempts_made == 1


async def test_a_plain_function_adds_children_too(flow, queue, work, read):
    def handle(job):
        if not len(job.children()):
            job.add_children(FlowJob(PAGES, 1))
        job.wait_for_children()
        return list(job.children_values().values())

    job = await queue.add("book")
    async with work(handle), read():
        assert await job.wait(10) == ["read 1"]


async def test_a_handler_that_waits_for_no_children_is_run_again_at_once(flow, queue, work):
    runs = []

    async def handle(job):
        runs.append(job.id)
        if len(runs) == 1:
            raise WaitForChildren
        await job.wait_for_children()

    job = await queue.add("book")
    async with work(handle):
        await job.wait(10)
    assert len(runs) == 2


async def test_a_parent_that_completes_before_its_children_has_failed(flow, queue, work, finished):
    async def handle(job):
        await job.add_children(FlowJob(PAGES, 1))

    job = await queue.add("book")
    async with work(handle):
        assert (await finished(queue, job.id)).error == "the job has children that have not finished"


async def test_the_delay_of_a_parent_counts_from_when_its_children_are_done(flow, queue, read, eventually):
    tree = await flow.add(_book(1, delay=600))
    async with read():

        async def delayed():
            return (await queue.get(tree.job.id)).state is State.DELAYED

        await eventually(delayed)


async def test_removing_a_parent_removes_its_children(flow, queue, connection):
    tree = await flow.add(_book(1, 2))
    await queue.admin.remove(tree.job.id)
    async with Queue(PAGES, connection) as pages:
        assert (await pages.counts())[State.WAITING] == 0
    assert (await queue.counts())[State.WAITING_CHILDREN] == 0


async def test_a_parent_can_be_removed_alone(flow, queue, connection):
    tree = await flow.add(_book(1, 2))
    await queue.admin.remove(tree.job.id, children=False)
    assert await queue.get(tree.job.id) is None
    async with Queue(PAGES, connection) as pages:
        assert (await pages.counts())[State.WAITING] == 2


async def test_a_parent_is_released_when_its_last_child_is_removed(flow, queue, connection, work):
    tree = await flow.add(_book(1))
    async with Queue(PAGES, connection) as pages:
        await pages.admin.remove(tree.children[0].job.id)
    async with work(_values):
        assert await tree.job.wait(10) == []


async def test_a_flow_is_added_as_a_whole_or_not_at_all(flow, queue, connection):
    taken = await flow.add(FlowJob("letters", "first", children=[FlowJob(PAGES, 1, id="taken")]))
    second = FlowJob(
        "letters", "second", id="second", children=[FlowJob(PAGES, 2, id="free"), FlowJob(PAGES, 1, id="taken")]
    )
    with pytest.raises(WrongState, match="another parent"):
        await flow.add(second)
    below_nobody = FlowJob(PAGES, 3, id="third", parent=Parent("nobody", "letters"), children=[FlowJob(PAGES, 4)])
    with pytest.raises(JobNotFound, match="nobody"):
        await flow.add_many([FlowJob("letters", "other", id="other"), below_nobody])
    assert [await queue.get(one) for one in ("second", "other")] == [None, None]
    async with Queue(PAGES, connection) as pages:
        assert await pages.get("free") is None
        assert await pages.get("third") is None
    assert len(await queue.children(taken.job.id)) == 1


async def test_what_a_flow_can_not_hold_is_refused_before_anything_is_written(flow, queue):
    unique = Unique("k")
    for wrong in (
        FlowJob("letters", 1, unique=unique, children=[FlowJob(PAGES, 1)]),
        FlowJob("letters", 1, children=[FlowJob(PAGES, 1, unique=unique)]),
        FlowJob("letters", 1, children=[FlowJob(PAGES, 1, parent=Parent("x", "letters"))]),
        FlowJob("letters", 1, children=[FlowJob(PAGES, float("nan"))]),
    ):
        with pytest.raises(InvalidOption):
            await flow.add(wrong)
    with pytest.raises(InvalidOption, match="on_failure"):
        FlowJob("letters", 1, on_failure="shrug")  # type: ignore[arg-type]
    assert sum((await queue.counts()).values()) == 0


async def test_the_root_of_a_tree_without_children_is_a_job_like_any_other(flow, work):
    tree = await flow.add(FlowJob("letters", 7))
    assert tree.job.state is State.WAITING
    async with work(_values):
        assert await tree.job.wait(10) == []


async def test_an_empty_list_of_flows_adds_nothing(flow, queue):
    assert await flow.add_many([]) == []
    assert sum((await queue.counts()).values()) == 0
