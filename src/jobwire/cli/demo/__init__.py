"""The demo: real servers, producers, workers and a table to watch them by.

A `Station` is one protocol on one server, with the same work to do everywhere (`workload`). A protocol joins the demo
with one entry in `stations.py`.
"""
