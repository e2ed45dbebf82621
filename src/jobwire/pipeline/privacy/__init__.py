"""Keeps private values of jobs out of the lake: rules by queue and JSON path, applied before anything is written."""
