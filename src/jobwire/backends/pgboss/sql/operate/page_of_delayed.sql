-- Returns delayed jobs in the order in which they become due, after the one that a cursor names. Backward: in the opposite order. An index
-- has the due times of each of the two states in order, so both are read to the end of the page, and merged. The list of states repeats the
-- condition of that index.
WITH chosen AS MATERIALIZED (
    SELECT c.* FROM (VALUES ('created'::{schema}.job_state), ('retry')) s (state)
    CROSS JOIN LATERAL (
        SELECT j.id, j.start_after, j.created_on FROM {job} j
        WHERE j.name = :queue AND j.state = s.state AND j.state IN ('created', 'retry', 'active', 'failed') AND j.start_after > {now}
            AND NOT j.blocked --? blocked
            AND (j.start_after, j.created_on, j.id) > (:due::timestamptz, :moment::timestamptz, :id::uuid) --? after forward
            AND (j.start_after, j.created_on, j.id) < (:due::timestamptz, :moment::timestamptz, :id::uuid) --? after backward
        ORDER BY
            j.start_after, j.created_on, j.id --? forward
            j.start_after DESC, j.created_on DESC, j.id DESC --? backward
        LIMIT :limit::bigint
            + :skip::bigint --? skip
    ) c
    ORDER BY
        c.start_after, c.created_on, c.id --? forward
        c.start_after DESC, c.created_on DESC, c.id DESC --? backward
    LIMIT :limit::bigint
    OFFSET :skip::bigint --? skip
)
SELECT
{columns}
FROM chosen c JOIN {job} j ON j.name = :queue AND j.id = c.id
ORDER BY
    c.start_after, c.created_on, c.id --? forward
    c.start_after DESC, c.created_on DESC, c.id DESC --? backward
