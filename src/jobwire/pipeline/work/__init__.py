"""Workers as Spark tasks, for a backlog that has outgrown the workers it has.

from jobwire.pipeline.work import work

work(spark, lake, "emails", "shop.mail:send", url, tasks=8)
"""

from jobwire.pipeline.work.result import FleetStatus, WorkerReport, WorkResult
from jobwire.pipeline.work.work import work

__all__ = ["FleetStatus", "WorkResult", "WorkerReport", "work"]
