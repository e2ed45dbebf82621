"""No second job for the same thing: python unique.py

Without JOBWIRE_URL it uses an embedded server in ./.jobwire. Needs a protocol with unique keys: all but BridgeMQ.
"""

import asyncio

from jobwire import App, Queue, Unique, by

app = App()


@app.task(unique=by("user"))
async def send_digest(user: int, language: str = "en") -> None: ...


async def main() -> None:
    async with app, Queue("shipping", app.connection) as shipping:
        first = await shipping.add({"order": 17}, unique=Unique("order-17"))
        second = await shipping.add({"order": 17}, unique=Unique("order-17"))  # does not raise
        print(first.add_status.value, second.add_status.value, first.id == second.id)

        digests = [await send_digest.add(7), await send_digest.add(7, language="de"), await send_digest.add(8)]
        print([digest.add_status.value for digest in digests])

        for queue in (shipping, app.queue("send_digest")):
            await queue.admin.drain()  # so that the next run of this program finds the keys free


if __name__ == "__main__":
    asyncio.run(main())
