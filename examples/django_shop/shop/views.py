from django.db import transaction
from django.http import HttpRequest, JsonResponse
from django.urls import path

from shop.jobs import in_transaction, mail_receipt, ship
from shop.models import Order


@transaction.atomic
def order(request: HttpRequest) -> JsonResponse:
    new = Order.objects.create(item=request.GET["item"])

    # In the transaction: the order exists if and only if its job does.
    job = in_transaction(ship).add(order_id=new.id)

    # After the commit, which works with every protocol. If the process dies in between, there is no receipt.
    transaction.on_commit(lambda: mail_receipt.add(order_id=new.id))

    if new.item == "unicorn":  # found out too late: order and jobs are rolled back
        raise ValueError("not in stock")
    return JsonResponse({"order": new.id, "job": job.id}, status=201)


urlpatterns = [path("orders", order)]
