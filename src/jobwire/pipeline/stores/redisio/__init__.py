"""Code that the two Redis protocols share in the pipeline: a blocking connection, and partitions of sorted sets."""
