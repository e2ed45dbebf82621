"""Live queues as Spark tables and streams, in and out: history, reports, archive, bulk load, moves between stores."""
