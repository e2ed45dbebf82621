"""Claims jobs, extends their leases and settles their outcomes."""
