-- Returns for each job, given as JSON, that was not added: `duplicate` if another one has its id or key, `throttled` if its
-- time slot is taken or a policy without a key admits no more; and the id of that other job, null if it is gone by now.
SELECT r.id,
    CASE
        WHEN same.id IS NOT NULL THEN 'duplicate'
        WHEN slot.id IS NOT NULL OR (twin.id IS NULL AND r.singleton_seconds IS NOT NULL) THEN 'throttled'
        WHEN r.singleton_key IS NOT NULL OR coalesce(r.policy, q.policy) = 'standard' THEN 'duplicate'
        ELSE 'throttled'
    END,
    coalesce(same.id, slot.id, twin.id)
FROM {schema}.queue q
CROSS JOIN json_to_recordset(:jobs::json) AS r (
    id uuid, singleton_key text, singleton_seconds float8, singleton_offset float8, policy text
)
LEFT JOIN LATERAL (
    SELECT j.id FROM {job} j WHERE j.name = :queue AND j.id = r.id
) same ON true
LEFT JOIN LATERAL (
    SELECT j.id FROM {job} j
    WHERE r.singleton_seconds IS NOT NULL AND j.name = :queue
        AND j.singleton_on IS NOT NULL AND j.state <> 'cancelled'
        AND coalesce(j.singleton_key, '') = coalesce(r.singleton_key, '')
        AND j.singleton_on = 'epoch'::timestamp + '1s'::interval * (
            r.singleton_seconds
            * floor((extract(epoch FROM {now}) + coalesce(r.singleton_offset, 0)) / r.singleton_seconds)
        )
    LIMIT 1
) slot ON true
LEFT JOIN LATERAL (
    SELECT j.id FROM {job} j
    WHERE j.name = :queue AND j.policy = coalesce(r.policy, q.policy)
        AND coalesce(j.singleton_key, '') = coalesce(r.singleton_key, '')
        AND (
            (j.policy = 'short' AND j.state = 'created')
            OR (j.policy = 'stately' AND j.state = 'created')
            OR (j.policy = 'exclusive' AND j.state <= 'active')
        )
    ORDER BY j.created_on
    LIMIT 1
) twin ON true
WHERE q.name = :queue
