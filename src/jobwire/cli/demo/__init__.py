"""The demo: real servers, producers, workers and a live table.

A `DemoStore` is one protocol on one server. All of them have the same `workload`. A protocol is added to the demo with
one entry in `demo_stores.py`.
"""
