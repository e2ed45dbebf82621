"""Celery tasks that were moved to jobwire. Above each piece stands what it was with Celery: python from_celery.py

Without JOBWIRE_URL it uses an embedded server in ./.jobwire.
"""

import asyncio
from datetime import UTC, datetime, timedelta

from jobwire import App, Backoff, Job, JobFailed, Keep, Rate, Snooze, Unrecoverable, current_job

# app = Celery("shop", broker="redis://…", backend="redis://…")
app = App()  # JOBWIRE_URL; results are in the same store


class BankUnavailable(Exception): ...


class CardRefused(Unrecoverable): ...


# @app.task(
#     bind=True, queue="payments", autoretry_for=(BankUnavailable,), max_retries=4, retry_backoff=0.01,
#     retry_backoff_max=60, time_limit=30, rate_limit="600/m", result_expires=3600, acks_late=True,
# )
# def charge(self, customer, cents):
#     if self.request.retries == 0: ...
#     raise BankUnavailable          # in autoretry_for: runs again
#     raise CardRefused              # in no list: fails
#
# * attempts counts all runs: the first one, and four retries.
# * Every exception leads to the next attempt, unless it is an Unrecoverable.
# * The rate holds for all workers together, and not for each.
# * A job whose worker dies runs again: there is no acks_late to forget.
@app.task(
    queue="payments",
    attempts=5,
    backoff=Backoff.exponential(0.01),
    timeout=30,
    rate=Rate(600, per=60),
    keep_completed=Keep(age=3600),
)
async def charge(customer: int, cents: int) -> str:
    if cents > 100_000:
        raise CardRefused("the limit of the card is 1000.00")
    if current_job().attempts_made == 0:
        raise BankUnavailable("try again")
    return f"{customer}: {cents / 100:.2f}"


# @app.task(bind=True)
# def wait_for_parcel(self, number):
#     raise self.retry(countdown=60)          # counts as a retry
@app.task
async def wait_for_parcel(number: int) -> str:
    if datetime.now(UTC) < started + timedelta(seconds=0.5):
        raise Snooze(0.2)  # does not count as an attempt
    return f"parcel {number} is there"


# @app.task
# def resize(name, width): ...               # with a pool of threads or processes
@app.task(queue="images")
def resize(name: str, width: int = 100) -> str:  # a plain function runs in a thread, or with executor="process"
    return f"{name}@{width}"


# @task_failure.connect
@app.on_failed
def report(job: Job) -> None:
    failures.append(f"{job.name}: {job.error}")


async def main() -> None:
    # celery -A shop worker --concurrency 10
    async with app, app.worker(concurrency=10, max_backoff=60):
        # result = charge.delay(7, 1200); result.get(timeout=30)
        job = await charge.add(customer=7, cents=1200)
        print(await job.wait(timeout=30))

        # charge.apply_async((7, 500_000)).get(propagate=False)
        refused = await charge.add(7, 500_000)
        try:
            await refused.wait(timeout=30)
        except JobFailed as failed:
            print(failed)

        # resize.apply_async(("a.png",), countdown=1)
        # resize.apply_async(("b.png",), {"width": 50}, eta=moment, task_id="b")
        first = await resize.options(delay=0.2).add("a.png")
        moment = datetime.now(UTC) + timedelta(seconds=0.1)
        second = await resize.options(run_at=moment, id="b").add("b.png", width=50)
        print(await first.wait(timeout=30), await second.wait(timeout=30))

        # group(resize.s(name) for name in "cd")().get()
        jobs = await resize.add_many([{"name": name} for name in "cd"])
        print([await job.wait(timeout=30) for job in jobs])

        parcel = await wait_for_parcel.add(17)
        print(await parcel.wait(timeout=30))

        # app.conf.beat_schedule = {"nightly": {"task": "resize", "schedule": crontab(hour=3), "args": ("logo.png",)}}
        schedule = await resize.schedule(
            "nightly", cron="0 3 * * *", tz="Europe/Berlin", arguments={"name": "logo.png"}
        )
        print(schedule.cron, schedule.tz)
    print(failures)


failures: list[str] = []
started = datetime.now(UTC)

if __name__ == "__main__":
    asyncio.run(main())
