SELECT count(*) FROM {schema}.jobs WHERE status = 'SENT' AND sent_at < %(before)s
