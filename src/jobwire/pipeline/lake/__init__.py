"""The lake: tables, the pointers that publish them, and the log of runs."""
