import logging

from jobwire import Queue

queue = Queue("orders")
log = logging.getLogger(__name__)
