"""The tasks of the shop. JOBWIRE_URL names the database of the shop, too: pgboss+postgresql://…

The worker is a process of its own: python worker.py
"""

from django.db import connection

from jobwire import sync
from shop.models import Order

app = sync.App()


@app.task(attempts=5)
def ship(order_id: int) -> str:
    label = f"PARCEL-{order_id}"
    Order.objects.filter(id=order_id).update(label=label)
    return label


@app.task(attempts=5)
def mail_receipt(order_id: int) -> None:
    Order.objects.filter(id=order_id).update(mailed=True)


def in_transaction(task: sync.Task) -> sync.Task:
    """Returns the task such that its jobs are added in Django's transaction: they are committed with it, or not at
    all. Django has to run on psycopg 3, and both on the same database."""
    connection.ensure_connection()
    return task.options(transaction=connection.connection)
