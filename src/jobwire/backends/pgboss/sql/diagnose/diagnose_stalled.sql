-- Returns active jobs that have run for longer than they may, or whose heartbeats have expired.
SELECT j.id FROM {job} j
WHERE j.name = :queue AND j.state = 'active' AND (
    j.started_on < {now} - j.expire_seconds * interval '1 second'
    OR j.heartbeat_on < {now} - j.heartbeat_seconds * interval '1 second' --? heartbeat_seconds
)
LIMIT :limit::integer
