-- Fails jobs whose claims are valid. A job that has attempts left gets its next attempt after pg-boss's wait (or the one given). Any other
-- has failed for good, with a copy in its dead letter queue. Waits end within a century, whatever numbers another client stored.
WITH held AS MATERIALIZED (
    SELECT j.id,
        :outputs::jsonb -> (p.nth - 1) AS output,
        (:heartbeats::integer[])[p.nth] AS heartbeat,
        l.most, j.retry_count < l.most AND NOT (:finals::boolean[])[p.nth]
        AND NOT (j.policy IS NOT DISTINCT FROM 'stately' AND EXISTS (
            SELECT FROM {job} o WHERE o.name = :queue AND o.state = 'retry' AND o.policy = 'stately'
                AND coalesce(o.singleton_key, '') = coalesce(j.singleton_key, '')
        )) AS again,
        coalesce((:waits::float8[])[p.nth], CASE WHEN NOT j.retry_backoff THEN j.retry_delay ELSE least(
            j.retry_delay_max, greatest(j.retry_delay, 1) * 2 ^ greatest(least(15, j.retry_count), 0) * (1 + random())
        ) END) AS wait
    FROM {job} j CROSS JOIN LATERAL (SELECT array_position(:ids, j.id) AS nth) p
    CROSS JOIN LATERAL (
        SELECT j.retry_limit - CASE WHEN j.retry_limit < 2147483647 THEN (:reserves::integer[])[p.nth] ELSE 0 END AS most
    ) l
    WHERE j.name = :queue AND j.id = ANY (:ids::uuid[]) AND j.state::text = 'active'
        AND j.retry_count = (:attempts::integer[])[p.nth] AND j.started_on = (:starts::timestamptz[])[p.nth]
    FOR UPDATE OF j
), settled AS (
    UPDATE {job} j
    SET state = CASE WHEN h.again THEN 'retry' ELSE 'failed' END::{schema}.job_state,
        completed_on = CASE WHEN h.again THEN NULL ELSE {now} END,
        start_after = CASE WHEN h.again THEN {now} + least(h.wait, 3e9) * interval '1 second' ELSE j.start_after END,
        heartbeat_on = NULL, --? heartbeat_on
        heartbeat_seconds = h.heartbeat, --? heartbeat_seconds
        upsert_by_key = NULL, --? upsert_by_key
        retry_limit = h.most,
        output = nullif(h.output, 'null')
    FROM held h
    WHERE j.name = :queue AND j.id = ANY (:ids::uuid[]) AND j.id = h.id
    RETURNING j.*
), dead AS (
    INSERT INTO {schema}.job (
        name, data, priority, singleton_key, retry_limit, retry_backoff, retry_delay, expire_seconds, deletion_seconds,
        start_after, created_on, keep_until
        , group_id, group_tier --? group_id
        , heartbeat_seconds --? heartbeat_seconds
        , source_name, source_id, source_created_on, source_retry_count --? source_name
        , source_output, source_root_id --? source_root_id
        , trace_context --? trace_context
    )
    SELECT
        d.name, s.data, s.priority, s.singleton_key, d.retry_limit, d.retry_backoff, d.retry_delay, d.expire_seconds,
        d.deletion_seconds, {now}, {now}, {now} + d.retention_seconds * interval '1 second'
        , s.group_id, s.group_tier --? group_id
        , d.heartbeat_seconds --? heartbeat_seconds
        , s.name, s.id, s.created_on, s.retry_count --? source_name
        , s.output, coalesce(s.source_root_id, s.id) --? source_root_id
        , s.trace_context --? trace_context
    FROM settled s JOIN {schema}.queue d ON d.name = s.dead_letter
    WHERE s.state = 'failed'
    ON CONFLICT DO NOTHING
    RETURNING 1
)
SELECT
    s.id, s.state
    , s.blocking --? blocking
    , false --! blocking
FROM settled s
