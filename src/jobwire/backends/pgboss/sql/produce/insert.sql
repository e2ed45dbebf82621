-- Adds jobs, given as JSON, and notifies workers of them. A missing option gets the queue's value. Returns one row per job that was
-- added: a job that a unique index refuses is left out, and without the queue a row of null is returned. Jobs of one call are a microsecond
-- apart, so that they run in the order given. A job for the next slot of its throttle waits until this slot has ended and a second more, as
-- in Node.
WITH q AS (
    SELECT * FROM {schema}.queue WHERE name = :queue
), added AS (
    INSERT INTO {job} (
        id, name, priority, data, retry_limit, retry_delay, retry_backoff, retry_delay_max, expire_seconds,
        deletion_seconds, singleton_key, singleton_on, start_after, created_on, keep_until, dead_letter, policy
        , group_id, group_tier --? group_id
        , heartbeat_seconds --? heartbeat_seconds
        , blocked, blocking, pending_dependencies --? blocked
        , upsert_by_key --? upsert_by_key
    )
    SELECT
        r.id,
        q.name,
        coalesce(r.priority, 0), --? with_options
        0, --! with_options
        r.data,
        coalesce(r.retry_limit, q.retry_limit), --? with_options
        coalesce(r.retry_delay, q.retry_delay), --? with_options
        coalesce(r.retry_backoff, q.retry_backoff), --? with_options
        coalesce(r.retry_delay_max, q.retry_delay_max), --? with_options
        coalesce(r.expire_seconds, q.expire_seconds), --? with_options
        coalesce(r.deletion_seconds, q.deletion_seconds), --? with_options
        r.singleton_key, --? with_options
        CASE WHEN r.singleton_on IS NOT NULL THEN r.singleton_on WHEN r.singleton_seconds IS NOT NULL THEN --? with_options
            'epoch'::timestamp + '1s'::interval * ( --? with_options
                r.singleton_seconds --? with_options
                * floor(( --? with_options
                    extract(epoch FROM {now}) --? with_options
                    + CASE WHEN r.next_slot THEN r.singleton_seconds ELSE coalesce(r.singleton_offset, 0) END --? with_options
                ) / r.singleton_seconds) --? with_options
            ) --? with_options
        END, --? with_options
        t.start_after, --? with_options
        q.retry_limit, q.retry_delay, q.retry_backoff, q.retry_delay_max, q.expire_seconds, --! with_options
        q.deletion_seconds, NULL, NULL, {now}, --! with_options
        {now} + (r.nth - 1) * interval '1 microsecond',
        t.start_after + coalesce(r.retention_seconds, q.retention_seconds) * interval '1 second', --? with_options
        coalesce(r.dead_letter, q.dead_letter), --? with_options
        coalesce(r.policy, q.policy) --? with_options
        {now} + q.retention_seconds * interval '1 second', q.dead_letter, q.policy --! with_options
        , r.group_id, r.group_tier --? with_options group_id
        , NULL, NULL --? plain group_id
        , coalesce(r.heartbeat_seconds, q.heartbeat_seconds) --? with_options heartbeat_seconds
        , q.heartbeat_seconds --? plain heartbeat_seconds
        , coalesce(r.blocked, false), coalesce(r.blocking, false), coalesce(r.pending, 0) --? with_options blocked
        , false, false, 0 --? plain blocked
        , r.upsert_by_key --? with_options upsert_by_key
        , NULL --? plain upsert_by_key
    FROM q, ROWS FROM (json_to_recordset(:jobs::json) AS (
        id uuid, data jsonb
        , priority integer, delay float8, after interval, run_at timestamptz, retry_limit integer --? with_options
        , retry_delay integer, retry_backoff boolean, retry_delay_max integer, expire_seconds integer --? with_options
        , deletion_seconds integer, retention_seconds integer, singleton_key text, singleton_seconds float8 --? with_options
        , singleton_offset float8, singleton_on timestamp, dead_letter text, policy text, group_id text --? with_options
        , group_tier text, heartbeat_seconds integer, blocked boolean, blocking boolean, pending integer --? with_options
        , upsert_by_key boolean, next_slot boolean --? with_options
    )) WITH ORDINALITY AS r (
        id, data
        , priority, delay, after, run_at, retry_limit, retry_delay, retry_backoff, retry_delay_max --? with_options
        , expire_seconds, deletion_seconds, retention_seconds, singleton_key, singleton_seconds --? with_options
        , singleton_offset, singleton_on, dead_letter, policy, group_id, group_tier, heartbeat_seconds --? with_options
        , blocked, blocking, pending, upsert_by_key, next_slot --? with_options
        , nth
    )
    , LATERAL ( --? with_options
        SELECT CASE WHEN r.next_slot THEN {now} + interval '1 second' * ( --? with_options
            greatest(r.singleton_seconds - floor( --? with_options
                extract(epoch FROM {now})::float8 --? with_options
                - r.singleton_seconds * floor(extract(epoch FROM {now})::float8 / r.singleton_seconds) --? with_options
            ), 1) + CASE WHEN r.singleton_seconds > 1 THEN 1 ELSE 0 END --? with_options
        ) ELSE coalesce( --? with_options
            r.run_at, {now} + coalesce(r.after, coalesce(r.delay, 0) * interval '1 second') --? with_options
        ) END AS start_after --? with_options
    ) t --? with_options
    ON CONFLICT DO NOTHING
    RETURNING id, start_after
), notified AS MATERIALIZED (
    SELECT pg_notify(CASE WHEN bool_or(a.start_after <= {now}) THEN :channel ELSE :own_channel END, :queue)
    FROM added a
    WHERE (SELECT notify FROM q) --? queue.notify
    HAVING count(*) > 0
)
SELECT a.id, (SELECT count(*) FROM notified) FROM added a
UNION ALL
SELECT NULL, 0 WHERE NOT EXISTS (SELECT FROM q)
