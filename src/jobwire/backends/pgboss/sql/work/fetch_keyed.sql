-- Claims jobs where a key, a group or a rate limits how many may run at once. Candidates are read first and locked afterwards, so that a
-- batch claims no more of a key than may run.
WITH seen AS MATERIALIZED (
    SELECT j.id, j.priority, j.created_on, coalesce(j.singleton_key, '') AS key
        , j.group_id, j.group_tier --? group_id
        , 'key:' || j.singleton_key AS rate_key --? rate_by_key
        , 'group:' || j.group_id AS rate_key --? rate_by_group
    FROM {job} j
    WHERE j.name = :queue
        AND j.state < 'active'
        AND NOT j.blocked --? blocked
        AND j.start_after <= {now}
        AND j.priority >= :min_priority --? min_priority
        AND j.priority <= :max_priority --? max_priority
        AND NOT EXISTS (SELECT FROM {side}.held h WHERE h.name = :queue) --? side
        AND NOT EXISTS ( --? one_of_key
            SELECT FROM {job} a WHERE a.name = :queue AND a.state = 'active' --? one_of_key
                AND a.policy = 'singleton' --? singleton
                AND a.policy = 'stately' --? stately
                AND coalesce(a.singleton_key, '') = coalesce(j.singleton_key, '') --? one_of_key
        ) --? one_of_key
        AND (j.state = 'retry' OR NOT EXISTS ( --? fifo
            SELECT FROM {job} a WHERE a.name = :queue AND a.singleton_key = j.singleton_key --? fifo
                AND a.state IN ('active', 'retry', 'failed') AND a.policy = 'key_strict_fifo' --? fifo
        )) --? fifo
        AND NOT EXISTS ( --? fifo
            SELECT FROM {job} a WHERE a.name = :queue AND a.singleton_key = j.singleton_key --? fifo
                AND a.state < 'active' AND a.policy = 'key_strict_fifo' --? fifo
                AND NOT a.blocked --? fifo blocked
                AND j.state = 'created' AND (a.created_on, a.id) < (j.created_on, j.id) --? fifo
        ) --? fifo
        AND (j.group_id IS NULL OR ( --? grouped
            SELECT count(*) FROM {job} a WHERE a.name = :queue AND a.state = 'active' AND a.group_id = j.group_id --? grouped
        ) < coalesce((:tiers::jsonb->>j.group_tier)::integer, :most)) --? grouped
        AND NOT EXISTS ( --? rate_limited
            SELECT FROM {side}.pace p WHERE p.name = :queue AND p.until > clock_timestamp() AND p.started >= :most_starts --? rate_limited
                AND p.key = 'key:' || j.singleton_key --? rate_by_key
                AND p.key = 'group:' || j.group_id --? rate_by_group
        ) --? rate_limited
    ORDER BY j.priority DESC, j.created_on
    LIMIT :count * 10
), ranked AS (
    SELECT s.id
        , row_number() OVER (ORDER BY s.priority DESC, s.created_on) AS rank
    FROM (
        SELECT s.*
            , row_number() OVER (PARTITION BY s.key ORDER BY s.priority DESC, s.created_on) AS of_key --? one_of_key
            , 1 AS of_key --! one_of_key
            , row_number() OVER (PARTITION BY s.group_id ORDER BY s.priority DESC, s.created_on) AS of_group --? grouped
            , row_number() OVER (PARTITION BY s.rate_key ORDER BY s.priority DESC, s.created_on) AS of_rate_key --? rate_limited
        FROM seen s
    ) s
    WHERE s.of_key = 1
        AND (s.group_id IS NULL OR s.of_group + ( --? grouped
            SELECT count(*) FROM {job} a WHERE a.name = :queue AND a.state = 'active' AND a.group_id = s.group_id --? grouped
        ) <= coalesce((:tiers::jsonb->>s.group_tier)::integer, :most)) --? grouped
        AND (s.rate_key IS NULL OR s.of_rate_key + coalesce(( --? rate_limited
            SELECT p.started FROM {side}.pace p --? rate_limited
            WHERE p.name = :queue AND p.key = s.rate_key AND p.until > clock_timestamp() --? rate_limited
        ), 0) <= :most_starts) --? rate_limited
), next AS MATERIALIZED (
    SELECT j.id, j.ctid AS tid
        , j.heartbeat_seconds IS NULL OR j.heartbeat_seconds < 1 AS leased --? heartbeat_seconds
    FROM {job} j
    WHERE j.name = :queue
        AND j.id = ANY (ARRAY(SELECT r.id FROM ranked r ORDER BY r.rank LIMIT :count))
        AND j.state < 'active'
        AND NOT j.blocked --? blocked
        AND j.start_after <= {now}
    FOR UPDATE OF j SKIP LOCKED
)
{claim}
