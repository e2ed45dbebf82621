"""The pipeline every hour, in Airflow 3: put this file and steps.py into the folder of DAGs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import steps
from airflow.exceptions import AirflowFailException
from airflow.sdk import dag, task


@dag(
    schedule="@hourly",
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,  # a second ingest or build of one lake is refused
    default_args={"retries": 3, "retry_delay": timedelta(minutes=5)},
)
def jobwire_pipeline():
    @task
    def ingest():
        steps.ingest()

    @task
    def build():
        try:
            steps.build()
        except steps.PoorQuality as poor:
            raise AirflowFailException(str(poor)) from poor  # without another attempt

    @task
    def report():
        steps.report()

    @task
    def export():
        steps.export()

    ingest() >> build() >> [report(), export()]


jobwire_pipeline()
