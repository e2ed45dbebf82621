import os

from starlette.responses import Response

from jobwire import Worker

url = os.environ["JOBWIRE_URL"]


async def handle(job): ...
