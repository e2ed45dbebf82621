-- Few campaigns have not ended. They are found by the index of states, and not by going through those that have.
WITH unfinished AS MATERIALIZED (
    SELECT id FROM {schema}.campaigns WHERE status IN ('QUEUED', 'RUNNING', 'PAUSED'))
SELECT {columns} FROM {schema}.campaigns
WHERE id = ANY(ARRAY(
    SELECT id FROM unfinished WHERE %(before)s::text IS NULL OR id < %(before)s ORDER BY id DESC LIMIT %(limit)s))
ORDER BY id DESC
