"""`format("jobwire")`: live queues as Spark tables and streams, and DataFrames as jobs."""
