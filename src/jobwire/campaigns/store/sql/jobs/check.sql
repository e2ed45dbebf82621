-- Checks the next jobs among those that were fed at the last look, some time ago. One that is still QUEUED was lost in
-- the queue and is fed again. One that is SENDING is left to the sweep. Rows that are locked are waited for: the cursor
-- passes them once.
WITH turn AS MATERIALIZED (
    SELECT checked_id, seen_id, fed_id FROM {schema}.campaign_feeding
    WHERE campaign_id = %(campaign_id)s AND seen_at < now() - make_interval(secs => %(age)s) FOR NO KEY UPDATE),
reach AS MATERIALIZED (
    SELECT turn.*, coalesce((
        SELECT id FROM {schema}.jobs
        WHERE campaign_id = %(campaign_id)s AND id > turn.checked_id AND id <= turn.seen_id
        ORDER BY id OFFSET %(limit)s - 1 LIMIT 1), turn.seen_id) AS until
    FROM turn),
open AS MATERIALIZED (
    SELECT id FROM {schema}.jobs
    WHERE campaign_id = %(campaign_id)s AND id > (SELECT checked_id FROM reach) AND id <= (SELECT until FROM reach)
        AND status IN ('QUEUED', 'SENDING') AND due_at IS NULL AND returned_at IS NULL
    ORDER BY id FOR NO KEY UPDATE),
moved AS (
    UPDATE {schema}.campaign_feeding f
    SET checked_id = r.until,
        seen_id = CASE WHEN r.until = r.seen_id THEN r.fed_id ELSE r.seen_id END,
        seen_at = CASE WHEN r.until = r.seen_id THEN now() ELSE f.seen_at END
    FROM reach r WHERE f.campaign_id = %(campaign_id)s)
UPDATE {schema}.jobs j
SET returned_at = CASE WHEN j.status = 'QUEUED' THEN now() END,
    due_at = CASE WHEN j.status = 'SENDING' THEN coalesce(j.started_at, now()) END
WHERE j.id = ANY(ARRAY(SELECT id FROM open))
RETURNING j.id AS job_id, j.status, j.campaign_id, j.channel_id
