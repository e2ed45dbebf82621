SELECT count(*) FROM (
    SELECT 1 FROM {schema}.jobs
    WHERE campaign_id = %(campaign_id)s AND (status = 'QUEUED' AND due_at IS NOT NULL) IS TRUE LIMIT %(limit)s) fed
