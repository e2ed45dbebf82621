"""A look at a store differs exactly when something has happened there."""

from __future__ import annotations

from jobwire import urls
from jobwire.pipeline.stores.boundary import list_queues, look
from jobwire.sync import Queue, Worker


def test_a_store_looks_the_same_until_a_job_is_added_runs_or_is_removed(url: str) -> None:
    address = urls.parse(url)

    def now() -> str:
        return look(address, list_queues(address))

    with Queue("mail", url) as queue:
        queue.counts()
        looks = [now()]
        added = queue.add({"n": 1})
        assert now() == now()
        looks.append(now())
        Worker("mail", lambda job: None, url).run_until_idle(signals=False)
        looks.append(now())
        queue.add({"n": 2})
        looks.append(now())
        queue.admin.remove(added.id)
        looks.append(now())
    with Queue("images", url) as other:
        other.add({"n": 3})
    looks.append(now())
    assert len(set(looks)) == len(looks)
    assert now() == looks[-1]
    assert look(address, ["mail"]) == look(address, ["mail"]) != looks[-1]
