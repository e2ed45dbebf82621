SELECT {columns} FROM {schema}.campaigns
WHERE id > %(after)s AND (%(status)s::text IS NULL OR status = %(status)s) ORDER BY id LIMIT %(limit)s
