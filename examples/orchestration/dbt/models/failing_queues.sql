-- The share of jobs that failed for good, by queue and day.
select
    store,
    queue,
    cast(hour as date) as day,
    sum(added) as added,
    sum(failed) as failed,
    sum(failed) * 1.0 / nullif(sum(added), 0) as failed_share
from {{ source('jobwire', 'gold_throughput_hourly') }}
group by store, queue, cast(hour as date)
