SELECT j.id AS job_id, j.channel_id, c.username, j.status, j.attempts, j.sent_at, j.failed_at, j.error_message
FROM (
    SELECT * FROM {schema}.jobs WHERE campaign_id = %(campaign_id)s AND id > %(after)s ORDER BY id LIMIT %(limit)s) j
LEFT JOIN {schema}.channels c ON c.id = j.channel_id
ORDER BY j.id
