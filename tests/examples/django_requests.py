"""Asks the Django example for orders, as its own process: Django has one set of settings per process."""

import json

import django
from django.core.management import call_command
from django.test import Client

django.setup()
call_command("migrate", run_syncdb=True, verbosity=0)
client = Client(raise_request_exception=False)

from shop.models import Order  # noqa: E402 - Django has to be set up before

answers = [client.post(f"/orders?item={item}") for item in ("chair", "unicorn", "table")]
print(
    json.dumps(
        {
            "statuses": [answer.status_code for answer in answers],
            "orders": [answer.json()["order"] for answer in answers if answer.status_code == 201],
            "items": list(Order.objects.order_by("id").values_list("item", flat=True)),
        }
    )
)
