"""The pipeline's tables as assets of Dagster: `dagster dev -f dagster_assets.py`, with steps.py beside it."""

from __future__ import annotations

import dagster as dg
import steps

CHECK = "quality"


@dg.asset(group_name="jobwire")
def bronze() -> None:
    """Events and jobs as they were read from the stores."""
    steps.ingest()


@dg.asset(deps=[bronze], group_name="jobwire", check_specs=[dg.AssetCheckSpec(CHECK, asset="silver_and_gold")])
def silver_and_gold():
    """Jobs, runs and hourly figures. They are built as well if the check fails."""
    found = None
    try:
        steps.build()
    except steps.PoorQuality as poor:
        found = str(poor)
    result = dg.AssetCheckResult(check_name=CHECK, passed=found is None, metadata={"failed": found or ""})
    return dg.MaterializeResult(check_results=[result])


@dg.asset(deps=[silver_and_gold], group_name="jobwire")
def delta_tables() -> None:
    """Silver and gold for programs that read Delta."""
    steps.export()


hourly = dg.ScheduleDefinition(
    name="hourly", cron_schedule="5 * * * *", target=dg.AssetSelection.groups("jobwire"), execution_timezone="UTC"
)
defs = dg.Definitions(assets=[bronze, silver_and_gold, delta_tables], schedules=[hourly])
