SELECT {columns} FROM {schema}.jobs
WHERE campaign_id = %(campaign_id)s AND id > %(after)s AND (%(status)s::text IS NULL OR status = %(status)s)
ORDER BY id LIMIT %(limit)s
