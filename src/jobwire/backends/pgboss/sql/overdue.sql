-- Active jobs of queues that ran longer than they may, or gave no sign of life for longer than they promised.
SELECT j.name, j.id, j.retry_count, j.started_on::text,
    j.heartbeat_seconds, --? heartbeat_seconds
    NULL::integer, --! heartbeat_seconds
    j.started_on + j.expire_seconds * interval '1 second' < {now}
FROM {job} j
WHERE j.name = ANY (:names::text[]) AND j.state = 'active' AND (
    j.started_on + j.expire_seconds * interval '1 second' < {now}
    OR j.heartbeat_on + j.heartbeat_seconds * interval '1 second' < {now} --? heartbeat_seconds
)
LIMIT 1000
