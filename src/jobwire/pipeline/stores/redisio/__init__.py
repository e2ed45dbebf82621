"""What the pipeline's two Redis protocols share: a blocking line to the server, and slices of sorted sets."""
