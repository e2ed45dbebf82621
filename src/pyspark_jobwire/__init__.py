"""Spark imports every module named `pyspark_*` to find data sources: this is how it finds `format("jobwire")`."""

import importlib
from contextlib import suppress

# Spark looks in here for whatever format it doesn't know: without our extra, other people's must still be found.
with suppress(ImportError):
    DefaultSource = importlib.import_module("jobwire.pipeline.datasource.source").JobwireSource
