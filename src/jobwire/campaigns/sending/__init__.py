"""Sending: the two queues, what feeds them, and the worker that sends the messages.

A message is a row of `jobs`, which decides whether it is sent. The queue decides only when a worker looks at it: a job
of the queue that comes twice, too early or too late changes nothing. `feed` puts the next messages of a campaign into
the queue, a few seconds ahead of their time. `deliver` waits for a slot of the delivery rate, claims the row, sends and
settles. `upkeep` repairs what a crash left behind.
"""
