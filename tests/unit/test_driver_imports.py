"""Drivers that several threads import at once."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import sys, threading
from jobwire import urls
from jobwire.connection import load_backend

sys.setswitchinterval(1e-6)
failures, together = [], threading.Barrier(8)

def load(url):
    together.wait()
    try:
        load_backend(urls.parse(url))
    except BaseException as error:
        failures.append(repr(error))

stores = ["bullmq+redis://127.0.0.1", "bridgemq+redis://127.0.0.1", "pgboss+postgresql://127.0.0.1/a", "monque+mongodb://127.0.0.1/a"]
threads = [threading.Thread(target=load, args=(stores[number % 4],)) for number in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(*failures, sep="\\n")
"""


@pytest.mark.slow
def test_backends_can_be_loaded_in_several_threads_at_once() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stderr
