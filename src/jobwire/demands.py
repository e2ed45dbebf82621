"""Asking a protocol's Capabilities for what a job or schedule needs, before anything is written."""

from __future__ import annotations

from jobwire.backend import Capabilities
from jobwire.options import NewJob, NewSchedule


def demand_job(can: Capabilities, queue: str, job: NewJob) -> None:
    """Raise NotSupported for the first option of the job that the protocol has no place for."""
    if job.name is not None and job.name != queue and not can.job_names:
        can.require("job_names", "job names beside the queue's")
    if job.id is not None:
        can.require("custom_ids", "custom job ids")
    if job.priority is not None:
        can.require("priority", "priorities")
    if job.attempts is not None:
        can.require("per_job_attempts", "attempts per job")
    if job.backoff is not None:
        can.require("backoff", f"{job.backoff.kind} backoff", one=job.backoff.kind)
    if job.timeout is not None:
        can.require("job_timeout", "timeout per job")
    if job.keep_completed is not None or job.keep_failed is not None:
        can.require("keep", "keep_completed and keep_failed per job")
    if job.unique is not None:
        can.require("unique", "unique keys", one="key")
        for mode in ("ttl", "extend", "replace"):
            if getattr(job.unique, mode):
                can.require("unique", f"unique keys with {mode}", one=mode)
    if job.lifo:
        can.require("lifo", "lifo order")
    if job.parent is not None:
        can.require("flows", "parent jobs")
    if job.target is not None:
        can.require("routing", "routing by target")
    if job.expires is not None:
        can.require("expires", "expiry of waiting jobs")


def demand_schedule(can: Capabilities, queue: str, schedule: NewSchedule) -> None:
    """Raise NotSupported for the first part of the schedule that the protocol has no place for."""
    if schedule.every is not None:
        can.require("schedules", "schedules by interval", one="every")
    if schedule.cron is not None:
        can.require("schedules", "schedules by cron", one="cron")
    if schedule.tz is not None:
        can.require("schedules", "time zones in schedules", one="tz")
    if schedule.limit is not None:
        can.require("schedules", "limits on schedules", one="limit")
    if schedule.start_at is not None or schedule.end_at is not None:
        can.require("schedules", "start and end of schedules", one="window")
    if schedule.immediately:
        can.require("schedules", "schedules that start immediately", one="immediately")
    demand_job(can, queue, schedule.job)
