import os
import types

import httpx

url = os.environ["JOBWIRE_URL"]
shop = types.SimpleNamespace()


def open_for_business():
    return True


def send(job): ...


def render(job): ...


job = types.SimpleNamespace(id="17")
