"""Refuses what a job or schedule asks for and its protocol lacks, before anything is written."""

from __future__ import annotations

from jobwire.boundary import BACKOFFS, Capabilities, Feature
from jobwire.options import NewJob, NewSchedule


def require_for_job(can: Capabilities, queue: str, job: NewJob) -> None:
    """Raises NotSupported for the first option of the job that the protocol can't hold."""
    if job.name is not None and job.name != queue:
        can.require(Feature.JOB_NAMES)
    if job.priority is not None:
        can.require(Feature.PRIORITIES)
    if job.attempts is not None:
        can.require(Feature.ATTEMPTS)
    if job.backoff is not None:
        can.require(BACKOFFS[job.backoff.kind])
    if job.timeout is not None:
        can.require(Feature.TIMEOUTS)
    if job.keep_completed is not None or job.keep_failed is not None:
        can.require(Feature.KEEP)
    if job.unique is not None:
        can.require(Feature.UNIQUE)
        if job.unique.ttl:
            can.require(Feature.UNIQUE_TTL)
        if job.unique.extend:
            can.require(Feature.UNIQUE_EXTEND)
        if job.unique.replace:
            can.require(Feature.UNIQUE_REPLACE)
    if job.lifo:
        can.require(Feature.LIFO)
    if job.parent is not None:
        can.require(Feature.FLOWS)
    if job.target is not None:
        can.require(Feature.ROUTING)
    if job.expires is not None:
        can.require(Feature.EXPIRY)


def require_for_schedule(can: Capabilities, queue: str, schedule: NewSchedule) -> None:
    """Raises NotSupported for the first part of the schedule that the protocol can't hold."""
    if schedule.every is not None:
        can.require(Feature.SCHEDULE_EVERY)
    if schedule.cron is not None:
        can.require(Feature.SCHEDULE_CRON)
    if schedule.tz is not None:
        can.require(Feature.SCHEDULE_TZ)
    if schedule.limit is not None:
        can.require(Feature.SCHEDULE_LIMIT)
    if schedule.start_at is not None or schedule.end_at is not None:
        can.require(Feature.SCHEDULE_WINDOW)
    if schedule.immediately:
        can.require(Feature.SCHEDULE_IMMEDIATELY)
    require_for_job(can, queue, schedule.job)
