from django.db import models


class Order(models.Model):
    item = models.TextField()
    label = models.TextField(default="")
    mailed = models.BooleanField(default=False)
