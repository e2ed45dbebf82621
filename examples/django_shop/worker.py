"""Runs the jobs of the shop."""

import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "settings")
django.setup()

from shop.jobs import app  # noqa: E402 - Django has to be set up before

if __name__ == "__main__":
    app.worker(concurrency=4).run()
