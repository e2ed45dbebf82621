from jobwire import NewJob, Queue, Worker


async def handle(job):
    raise ConnectionError("mail.example.com does not answer")


async with Queue("emails") as emails:
    await emails.add_many([NewJob({"to": number}) for number in range(20)])
    await Worker("emails", handle).run_until_idle()
    await emails.add_many([NewJob({"to": number}) for number in range(3)])
