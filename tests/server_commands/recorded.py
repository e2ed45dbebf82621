"""What jobs cost each server, counted by `test_commands_per_job`. A job's cost is the count divided by the jobs."""

from __future__ import annotations

Counts = dict[str, int]

JOBS = {
    "add": 50,
    "adds of 1000 callers": 1000,
    "bulk add of 1000": 1000,
    "drain, 1 in a call": 100,
    "drain, 10 in a call": 100,
    "drain, 100 in a call": 500,
}

RECORDED: dict[str, dict[str, Counts]] = {
    "bullmq": {
        "add": {"script calls": 50, "commands": 400},
        "adds of 1000 callers": {"script calls": 3, "commands": 3015},
        "bulk add of 1000": {"script calls": 2, "commands": 3010},
        "drain, 1 in a call": {"script calls": 101, "commands": 2008},
        "drain, 10 in a call": {"script calls": 11, "commands": 838},
        "drain, 100 in a call": {"script calls": 6, "commands": 3573},
    },
    "bridgemq": {
        "add": {"script calls": 50, "commands": 598},
        "adds of 1000 callers": {"script calls": 3, "commands": 36},
        "bulk add of 1000": {"script calls": 2, "commands": 24},
        "drain, 1 in a call": {"script calls": 102, "commands": 3945},
        "drain, 10 in a call": {"script calls": 12, "commands": 795},
        "drain, 100 in a call": {"script calls": 7, "commands": 2220},
    },
    "pgboss": {
        "add": {"round trips": 50, "statements": 50},
        "adds of 1000 callers": {"round trips": 3, "statements": 3},
        "bulk add of 1000": {"round trips": 1, "statements": 1},
        "drain, 1 in a call": {"round trips": 102, "statements": 203},
        "drain, 10 in a call": {"round trips": 12, "statements": 23},
        "drain, 100 in a call": {"round trips": 7, "statements": 13},
    },
    "monque": {
        "add": {"commands": 50, "updates": 0},
        "adds of 1000 callers": {"commands": 3, "updates": 0},
        "bulk add of 1000": {"commands": 1, "updates": 0},
        "drain, 1 in a call": {"commands": 106, "updates": 200},
        "drain, 10 in a call": {"commands": 16, "updates": 20},
        "drain, 100 in a call": {"commands": 14, "updates": 10},
    },
}
