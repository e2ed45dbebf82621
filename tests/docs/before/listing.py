from jobwire import NewJob, Queue

queue = Queue("emails")
await queue.add_many([NewJob(number) for number in range(120)])
