-- Takes the next jobs for the queue: first those that were returned, which get a mark for their place, then those after
-- the cursor, which moves. Nothing is written for each of the latter. The channels are found by a subquery with
-- OFFSET 0: for a join the planner may read the whole table. An adopted job may refer to a channel that does not exist.
WITH returned AS MATERIALIZED (
    SELECT id, channel_id, attempts, returned_at FROM {schema}.jobs
    WHERE campaign_id = %(campaign_id)s AND returned_at IS NOT NULL AND status = 'QUEUED'
    ORDER BY returned_at, id LIMIT %(limit)s FOR NO KEY UPDATE SKIP LOCKED),
placed AS (  -- not those without a channel: a second update in this transaction would check the reference
    UPDATE {schema}.jobs j SET due_at = %(due_at)s, returned_at = NULL
    WHERE j.id = ANY(ARRAY(
        SELECT r.id FROM returned r WHERE EXISTS (SELECT 1 FROM {schema}.channels c WHERE c.id = r.channel_id)))),
next AS MATERIALIZED (
    SELECT id, channel_id, attempts FROM {schema}.jobs
    WHERE campaign_id = %(campaign_id)s
        AND id > coalesce((SELECT fed_id FROM {schema}.campaign_feeding WHERE campaign_id = %(campaign_id)s), '')
        AND status = 'QUEUED' AND due_at IS NULL AND returned_at IS NULL
    ORDER BY id LIMIT greatest(%(limit)s - (SELECT count(*) FROM returned), 0)),
moved AS (
    INSERT INTO {schema}.campaign_feeding (campaign_id, fed_id)
    SELECT %(campaign_id)s, max(id) FROM next HAVING count(*) > 0
    ON CONFLICT (campaign_id) DO UPDATE SET fed_id = excluded.fed_id),
fed AS (
    SELECT id, channel_id, attempts, returned_at FROM returned UNION ALL SELECT id, channel_id, attempts, NULL FROM next)
SELECT fed.id AS job_id, fed.channel_id, c.username, c.category, fed.attempts
FROM fed LEFT JOIN LATERAL (
    SELECT username, category FROM {schema}.channels WHERE channels.id = fed.channel_id OFFSET 0) c ON true
ORDER BY fed.returned_at NULLS LAST, fed.id
