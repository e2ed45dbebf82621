-- Makes the jobs of a campaign and its total. Without any, the campaign is over. The number is NULL if it does not run.
-- The lock waits for jobs that other programs are adding, so that the cursor of the feed can't pass them unseen.
WITH campaign AS (
    SELECT id, batch_id FROM {schema}.campaigns WHERE id = %(campaign_id)s AND status = 'RUNNING' FOR UPDATE),
created AS (
    INSERT INTO {schema}.jobs (id, campaign_id, channel_id, status)
    SELECT %(prefix)s || {next_id}, campaign.id, channel.id, 'QUEUED'
    FROM campaign
    JOIN {schema}.batch_channels listed ON listed.batch_id = campaign.batch_id
    JOIN {schema}.channels channel ON channel.id = listed.channel_id AND channel.is_active
    -- A conflict with a row that is being settled would wait for it, and that one waits for the campaign.
    WHERE NOT EXISTS (
        SELECT 1 FROM {schema}.jobs made
        WHERE made.campaign_id = campaign.id AND made.channel_id = channel.id AND made.duplicate_of IS NULL)
    ON CONFLICT (campaign_id, channel_id) WHERE duplicate_of IS NULL DO NOTHING
    RETURNING 1),
counted AS (
    SELECT (SELECT count(*)::integer FROM created) AS jobs,
        -- Another program may have made jobs and not counted them.
        (SELECT count(*)::integer FROM {schema}.jobs WHERE campaign_id = %(campaign_id)s) AS existing),
changed AS (
    UPDATE {schema}.campaigns c SET
        total_jobs = greatest(c.total_jobs, n.existing) + n.jobs,
        progress = CASE WHEN greatest(c.total_jobs, n.existing) + n.jobs = 0 THEN 100
            ELSE least(100, (c.sent + c.failed)::bigint * 100 / (greatest(c.total_jobs, n.existing) + n.jobs)) END,
        status = CASE WHEN c.sent + c.failed >= greatest(c.total_jobs, n.existing) + n.jobs
            THEN 'COMPLETED' ELSE c.status END,
        completed_at = CASE WHEN c.sent + c.failed >= greatest(c.total_jobs, n.existing) + n.jobs
            THEN now() ELSE c.completed_at END,
        updated_at = now()
    FROM campaign, counted n WHERE c.id = campaign.id RETURNING 1)
SELECT CASE WHEN EXISTS (SELECT 1 FROM campaign) THEN jobs END FROM counted
