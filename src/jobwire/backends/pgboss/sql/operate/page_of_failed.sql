-- Returns failed jobs, newest first, after the one that a cursor names. They are looked for among the newest 20,000 finished jobs, by the
-- index of times. Only if a page is not full then, all failed jobs are read by the index of states and sorted: they are old, or few. A
-- foreign client's row without a time comes last.
WITH newest AS MATERIALIZED (
    SELECT w.id, w.completed_on FROM (
        SELECT j.id, j.completed_on, j.state FROM {job} j
        WHERE j.name = :queue AND j.completed_on > '-infinity'
            AND (j.completed_on, j.id) < (:moment::timestamptz, :id::uuid) --? after
        ORDER BY j.completed_on DESC, j.id DESC
        LIMIT 20000
    ) w
    WHERE w.state = 'failed'
    LIMIT :limit::bigint
), every AS MATERIALIZED (
    SELECT j.id, coalesce(j.completed_on, '-infinity') AS completed_on FROM {job} j
    WHERE j.name = :queue AND j.state = 'failed'
        AND (coalesce(j.completed_on, '-infinity'), j.id) < (:moment::timestamptz, :id::uuid) --? after
        AND (SELECT count(*) FROM newest) < :limit::bigint
    ORDER BY coalesce(j.completed_on, '-infinity') DESC, j.id DESC
    LIMIT :limit::bigint
), chosen AS MATERIALIZED (
    SELECT * FROM newest WHERE (SELECT count(*) FROM newest) = :limit::bigint
    UNION ALL
    SELECT * FROM every
)
SELECT
{columns}
FROM chosen c JOIN {job} j ON j.name = :queue AND j.id = c.id
ORDER BY c.completed_on DESC, c.id DESC
