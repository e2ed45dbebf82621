WITH purged AS (
    DELETE FROM {schema}.jobs WHERE status = 'SENT' AND sent_at < %(before)s RETURNING 1)
SELECT count(*) FROM purged
