"""Kinds of findings that do not belong to one protocol."""

from __future__ import annotations

from jobwire.boundary.diagnosis import FindingKind, Severity

# --- the store ------------------------------------------------------------------------------------------------------

STORE_REFUSED = FindingKind(
    "store-refused",
    Severity.CRITICAL,
    "jobwire can't use this store",
    "no worker and no producer of jobwire starts here",
    "do what the sentence above asks for, then run jobwire doctor again",
)
STORE_EMPTY = FindingKind(
    "store-empty",
    Severity.NOTE,
    "the store is empty",
    "none: the first worker or producer makes what is missing",
    "if jobs should be there, compare the URL with that of their producers",
)
NOT_EXAMINED = FindingKind(
    "not-examined",
    Severity.NOTE,
    "something could not be looked at",
    "trouble there stays unseen",
    "correct what the sentence above names: a missing right, or data that another program has put there",
)
CLOCK_OFFSET = FindingKind(
    "clock-offset",
    Severity.WARNING,
    "the clocks of this machine and of the store differ",
    "peers that use their own clock run delayed jobs early or late, and times in logs do not match",
    "run NTP on both machines: timedatectl set-ntp true",
)
CONNECTIONS = FindingKind(
    "connections",
    Severity.WARNING,
    "the server is running out of connections",
    "when none is left, workers can't reconnect and their running jobs stall",
    "close idle clients, or raise the server's limit",
)
REPLICA = FindingKind(
    "replica",
    Severity.CRITICAL,
    "this server is a replica, not the primary",
    "it takes no writes: no job can be added or settled here",
    "put the primary's address into the URL",
)
REPLICA_LAG = FindingKind(
    "replica-lag",
    Severity.WARNING,
    "a replica is behind",
    "a failover to it loses the jobs and outcomes of that time",
    "look at the replica's load, disk and network",
)
MEMBER_DOWN = FindingKind(
    "member-down",
    Severity.WARNING,
    "a replica is not connected",
    "it has no copy of recent jobs, and a failover to it loses them",
    "start it again, or remove it from the configuration",
)

# --- side data ------------------------------------------------------------------------------------------------------

SIDE_NEWER = FindingKind(
    "side-data-newer",
    Severity.CRITICAL,
    "a newer jobwire made the side data",
    "this jobwire refuses to start on the store",
    "pip install --upgrade jobwire",
)
SIDE_OLDER = FindingKind(
    "side-data-older",
    Severity.NOTE,
    "an older jobwire made the side data",
    "the first worker or producer of this release brings it up to date; older ones must be stopped before that",
    "stop older releases of jobwire, then run jobwire doctor --fix",
)
SIDE_UNREADABLE = FindingKind(
    "side-data-version",
    Severity.CRITICAL,
    "the version of the side data can't be read",
    "jobwire refuses to start on the store",
    "restore the number from a backup, or write the version that other stores of yours have",
)

# --- queues ---------------------------------------------------------------------------------------------------------

NO_WORKER = FindingKind(
    "no-worker",
    Severity.WARNING,
    "a queue has jobs and no worker",
    "its jobs wait until a worker is started",
    "start a worker: jobwire worker MODULE:HANDLER --queue QUEUE",
)
WAITING = FindingKind(
    "waiting",
    Severity.WARNING,
    "jobs have been waiting for long",
    "the delay grows while jobs arrive faster than they are run",
    "start a worker, or raise the concurrency of those that run: jobwire worker MODULE:HANDLER --queue QUEUE",
)
PAUSED = FindingKind(
    "paused",
    Severity.NOTE,
    "a queue with waiting jobs has been paused for long",
    "its jobs wait until it is resumed",
    "jobwire resume QUEUE",
)
STALLED = FindingKind(
    "stalled",
    Severity.WARNING,
    "active jobs have lost their worker",
    "they stay active until a worker of the queue recovers them",
    "start a worker of this queue: it recovers them within a minute",
)
OVERDUE = FindingKind(
    "delayed-overdue",
    Severity.WARNING,
    "delayed jobs are due and have not become ready",
    "they are late, and stay so until a worker runs",
    "start a worker of this queue: workers make due jobs ready",
)
SCHEDULES_STOPPED = FindingKind(
    "schedules-stopped",
    Severity.WARNING,
    "schedules have stopped",
    "their jobs are not added",
    "start a worker of this queue: workers make the jobs of schedules",
)
UNROUTABLE = FindingKind(
    "unroutable",
    Severity.WARNING,
    "no live worker may run some jobs",
    "they wait until a worker with their server, stack, capabilities or region starts",
    "start such a worker, or remove the jobs: jobwire remove QUEUE ID",
)
FINISHED = FindingKind(
    "finished-growth",
    Severity.WARNING,
    "finished jobs pile up",
    "they fill memory or disk, and make listings and backups slow",
    "jobwire clean QUEUE --older-than 7d, and give workers keep_completed=Keep(age=…)",
)
MANY_QUEUES = FindingKind(
    "many-queues",
    Severity.NOTE,
    "there are more queues than were looked at",
    "trouble in the others stays unseen",
    "look at them with jobwire queues",
)

# --- peers and stored data ------------------------------------------------------------------------------------------

MIXED_VERSIONS = FindingKind(
    "mixed-versions",
    Severity.WARNING,
    "peers of different versions share queues",
    "a newer version may store what an older one misreads",
    "bring all producers and workers to one version",
)
UNTESTED_PEER = FindingKind(
    "untested-peer",
    Severity.WARNING,
    "a peer has a version that jobwire was not tested with",
    "it may store jobs in a form that jobwire misreads",
    "use a version from the table in the protocol's documentation, or a jobwire that lists yours",
)
INDEX_MISSING = FindingKind(
    "index-missing",
    Severity.CRITICAL,
    "an index is missing",
    "claims read whole tables or collections, and unique keys are not kept",
    "create it again",
)
INDEX_EXTRA = FindingKind(
    "index-extra",
    Severity.NOTE,
    "there is an index that the protocol does not use",
    "each add and each settle writes to it as well",
    "drop it if no program of yours reads by it",
)
ORPHANS = FindingKind(
    "orphans",
    Severity.WARNING,
    "queues list jobs whose data is gone",
    "these jobs are lost; workers discard the entries when they meet them",
    "find out what deletes data: an eviction policy, a script, or a restored backup",
)
LOCKS = FindingKind(
    "locks",
    Severity.WARNING,
    "there are locks without an owner",
    "what they lock can't be run, added or removed until they are deleted",
    "jobwire doctor --fix",
)
