SELECT count(*) FILTER (WHERE status = 'QUEUED') AS queued, count(*) FILTER (WHERE status = 'SENDING') AS sending,
    count(*) FILTER (WHERE status = 'SENT') AS sent, count(*) FILTER (WHERE status = 'FAILED') AS failed,
    coalesce(sum(attempts), 0)::bigint AS attempts, count(*) FILTER (WHERE attempts > 1) AS retried,
    min(sent_at) AS first_sent_at, max(sent_at) AS last_sent_at,
    coalesce((
        SELECT max(minute.sent) FROM (
            SELECT count(*) AS sent FROM {schema}.jobs
            WHERE campaign_id = %(campaign_id)s AND sent_at IS NOT NULL GROUP BY date_trunc('minute', sent_at)) minute),
        0) AS busiest_minute
FROM {schema}.jobs WHERE campaign_id = %(campaign_id)s
