"""Runs of the pipeline as events of OpenLineage."""
