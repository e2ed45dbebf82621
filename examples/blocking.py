"""The same without async: python blocking.py

Without JOBWIRE_URL it uses an embedded server in ./.jobwire.
"""

from jobwire.sync import App

app = App()


@app.task(queue="sums")
def add_up(numbers: list[int]) -> int:  # runs in a thread of the worker
    return sum(numbers)


def main() -> None:
    with app, app.worker(concurrency=4):
        job = add_up.add([1, 2, 3])
        print(job.wait(timeout=30))
        print([done.result for done in app.queue("sums").iter_jobs("completed")])


if __name__ == "__main__":
    main()
