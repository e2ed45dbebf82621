"""The demo: real servers, producers, workers and a live table.

A `Station` is one protocol on one server. All stations have the same `workload`. A protocol is added to the demo with
one entry in `stations.py`.
"""
