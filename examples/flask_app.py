"""Flask under a server that forks: gunicorn --preload --workers 2 flask_app:web

The worker is a process of its own: python flask_app.py

JOBWIRE_URL names the store. The queue is opened before the fork, and each process has its own connection all the same.
"""

from flask import Flask, abort, jsonify, request

from jobwire import sync

jobs = sync.App()  # JOBWIRE_URL


@jobs.task(queue="reports", attempts=3, timeout=60)
def render(title: str, pages: int = 1) -> str:
    job = sync.current_job()
    for page in range(1, pages + 1):
        job.update_progress(100 * page // pages)
    return f"{title}.pdf"


web = Flask(__name__)
jobs.open()


@web.post("/reports")
def create():
    given = request.get_json()
    job = render.add(title=given["title"], pages=given.get("pages", 1))
    return jsonify(job=job.id), 202


@web.get("/reports/<job_id>")
def show(job_id: str):
    job = render.get(job_id)
    if job is None:
        abort(404)
    return jsonify(state=job.state, progress=job.progress, file=job.result)


if __name__ == "__main__":
    jobs.worker(concurrency=4).run()
