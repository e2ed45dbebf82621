-- Makes jobs ready whose parents have all completed. Returns the number of parents.
WITH parent AS MATERIALIZED (
    SELECT j.name, j.id FROM {schema}.job j
    WHERE j.blocking AND j.state = 'completed'
    LIMIT 1000
    FOR UPDATE SKIP LOCKED
), child AS MATERIALIZED (
    SELECT d.child_name AS name, d.child_id AS id, count(*)::integer AS done
    FROM parent p JOIN {schema}.job_dependency d ON d.parent_name = p.name AND d.parent_id = p.id
    GROUP BY d.child_name, d.child_id
), freed AS (
    UPDATE {schema}.job j
    SET pending_dependencies = greatest(j.pending_dependencies - c.done, 0),
        blocked = j.pending_dependencies > c.done,
        start_after = CASE WHEN j.pending_dependencies > c.done THEN j.start_after ELSE greatest(j.start_after, {now}) END
    FROM child c
    WHERE j.name = c.name AND j.id = c.id AND j.blocked
    RETURNING j.name, j.blocked
), settled AS (
    UPDATE {schema}.job j SET blocking = false FROM parent p WHERE j.name = p.name AND j.id = p.id
), notified AS MATERIALIZED (
    SELECT pg_notify(:own_channel, f.name) FROM freed f WHERE NOT f.blocked GROUP BY f.name
)
SELECT (SELECT count(*) FROM parent), (SELECT count(*) FROM notified)
