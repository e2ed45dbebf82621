-- Settles claims of different jobs whose messages were all sent, with less work than `settle`. A claim that is lost,
-- since its attempt or its start is not that of the row any more, changes nothing. Rows are locked in the order of their
-- ids, so that two statements never wait for each other.
WITH held AS MATERIALIZED (
    SELECT id FROM {schema}.jobs WHERE id = ANY(%(ids)s::text[]) AND (status = 'SENDING') IS TRUE
    ORDER BY id FOR NO KEY UPDATE),
done AS (
    UPDATE {schema}.jobs j
    SET status = 'SENT', sent_at = now(), failed_at = NULL, error_message = NULL, due_at = NULL
    WHERE j.id = ANY(ARRAY(SELECT id FROM held)) AND (j.status = 'SENDING') IS TRUE
        AND j.attempts = (%(attempts)s::integer[])[array_position(%(ids)s::text[], j.id)]
        AND j.started_at = (%(starts)s::timestamptz[])[array_position(%(ids)s::text[], j.id)]
    RETURNING j.id, j.channel_id),
-- Most successes follow a success, and their channels have no errors to reset. In mode TEST nothing was sent to them.
recovered AS MATERIALIZED (
    SELECT id FROM {schema}.channels
    WHERE id = ANY(ARRAY(SELECT channel_id FROM done WHERE NOT id = ANY(%(tested)s::text[]))) AND error_count > 0 ORDER BY id FOR NO KEY UPDATE),
reset AS (
    UPDATE {schema}.channels c SET error_count = 0, updated_at = now()
    WHERE c.id = ANY(ARRAY(SELECT id FROM recovered)))
SELECT id FROM done
