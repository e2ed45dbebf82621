"""A role that may use pg-boss's schema and make none of its own."""

from __future__ import annotations

import psycopg
import pytest

from jobwire import FlowJob, InvalidOption, NotSupported, Queue, Rate, Worker, connect
from jobwire.backends.pgboss import Boss, GraphJob


@pytest.fixture
async def poor_url(jobwire_postgres, url, unique):
    """The place of the test, for a role without CREATE."""
    async with connect(url) as connection, Queue("letters", connection):
        pass
    role = f"poor_{unique}"
    async with await psycopg.AsyncConnection.connect(jobwire_postgres.url, autocommit=True) as database:
        await database.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'poor'")
        await database.execute(f"GRANT USAGE ON SCHEMA {unique} TO {role}")
        await database.execute(f"GRANT ALL ON ALL TABLES IN SCHEMA {unique} TO {role}")
        await database.execute(f"GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA {unique} TO {role}")
        place = jobwire_postgres.url.partition("@")[2]
        yield f"pgboss+postgresql://{role}:poor@{place}?schema={unique}"
        await database.execute(f"DROP OWNED BY {role}; DROP ROLE {role}")


async def test_progress_and_logs_are_not_kept_and_jobs_go_on(poor_url, caplog):
    async def handler(job):
        await job.update_progress(50)
        await job.log("half way")
        return "done"

    async with Queue("letters", poor_url) as queue, Worker("letters", handler, poor_url):
        added = await queue.add(1)
        assert await added.wait(20) == "done"
        assert (await queue.get(added.id)).progress is None
    assert caplog.text.count("goes on without pause, rate limits, progress and logs") == 1


async def test_a_rate_limit_is_refused_when_the_worker_starts(poor_url):
    async def handler(job): ...

    with pytest.raises(NotSupported, match="rate limits without schema"):
        await Worker("letters", handler, poor_url, rate=Rate(1, per=1)).run(signals=False)


async def test_a_flow_whose_data_can_not_be_stored_is_refused_before_anything_is_written(connection, queue):
    jobs = [GraphJob("a", queue.name, {"fine": 1}), GraphJob("b", queue.name, {"null": "\x00"}, depends_on=["a"])]
    with pytest.raises(InvalidOption, match=r"b\.data"):
        await Boss(connection).flow(jobs)


async def test_a_job_of_a_tree_is_refused_in_a_graph_with_the_class_that_is_meant(connection, queue):
    with pytest.raises(InvalidOption, match=r"jobs\[0\]: must be a GraphJob"):
        await Boss(connection).flow([FlowJob(queue.name, {"fine": 1})])
