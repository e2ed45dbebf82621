-- Releases or snoozes jobs, as if they had not been claimed. Where another job of the key has the state that this one would get, it gets
-- the other queued state.
WITH back AS (
    UPDATE {job} j
    SET state = CASE
            WHEN j.policy IN ('short', 'stately') AND EXISTS (
                SELECT FROM {job} o WHERE o.name = :queue AND o.state = 'created' AND o.policy = j.policy
                    AND coalesce(o.singleton_key, '') = coalesce(j.singleton_key, '')
            ) THEN 'retry'
            WHEN j.retry_count > 0 AND NOT (j.policy IS NOT DISTINCT FROM 'stately' AND EXISTS (
                SELECT FROM {job} o WHERE o.name = :queue AND o.state = 'retry' AND o.policy = 'stately'
                    AND coalesce(o.singleton_key, '') = coalesce(j.singleton_key, '')
            )) THEN 'retry'
            ELSE 'created'
        END::{schema}.job_state,
        started_on = NULL,
        retry_limit = j.retry_limit - CASE WHEN j.retry_limit < 2147483647 THEN 1 ELSE 0 END, --? heartbeat_seconds
        heartbeat_on = NULL, --? heartbeat_on
        heartbeat_seconds = (:heartbeats::integer[])[array_position(:ids, j.id)], --? heartbeat_seconds
        start_after = coalesce(
            {now} + (:waits::float8[])[array_position(:ids, j.id)] * interval '1 second', j.start_after
        )
    WHERE j.name = :queue AND j.id = ANY (:ids::uuid[]) AND j.state::text = 'active'
        AND j.retry_count = (:attempts::integer[])[array_position(:ids, j.id)]
        AND j.started_on = (:starts::timestamptz[])[array_position(:ids, j.id)]
    RETURNING j.id
), notified AS MATERIALIZED (
    SELECT pg_notify(:own_channel, :queue) FROM back HAVING count(*) > 0
)
SELECT b.id, (SELECT count(*) FROM notified) FROM back b
