"""What the pipeline's two Redis protocols share: a blocking connection to the server, and partitions of sorted sets."""
