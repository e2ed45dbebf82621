-- Makes jobs ready whose parents have all completed: of all parents, or of these. Returns the number of parents. The children are locked in
-- one order, since several workers may do this at a time. It is an order that no index has: otherwise the planner would read a whole index.
WITH parent AS MATERIALIZED (
    SELECT j.name, j.id FROM {schema}.job j
    WHERE j.blocking AND j.state = 'completed'
        AND j.name = :queue AND j.id = ANY (:ids::uuid[]) --? of_these
    LIMIT 1000
    FOR UPDATE SKIP LOCKED
), child AS MATERIALIZED (
    SELECT d.child_name AS name, d.child_id AS id, count(*)::integer AS done
    FROM parent p JOIN {schema}.job_dependency d ON d.parent_name = p.name AND d.parent_id = p.id
    GROUP BY d.child_name, d.child_id
), locked AS MATERIALIZED (
    SELECT j.name, j.id, c.done
    FROM child c JOIN {schema}.job j ON j.name = c.name AND j.id = c.id
    WHERE j.blocked
    ORDER BY j.id::text
    FOR UPDATE OF j
), freed AS (
    UPDATE {schema}.job j
    SET pending_dependencies = greatest(j.pending_dependencies - l.done, 0),
        blocked = j.pending_dependencies > l.done,
        start_after = CASE WHEN j.pending_dependencies > l.done THEN j.start_after ELSE greatest(j.start_after, {now}) END
    FROM locked l
    WHERE j.name = l.name AND j.id = l.id AND j.blocked
    RETURNING j.name, j.blocked
), settled AS (
    UPDATE {schema}.job j SET blocking = false FROM parent p WHERE j.name = p.name AND j.id = p.id
), notified AS MATERIALIZED (
    SELECT pg_notify(:own_channel, f.name) FROM freed f WHERE NOT f.blocked GROUP BY f.name
)
SELECT (SELECT count(*) FROM parent), (SELECT count(*) FROM notified)
