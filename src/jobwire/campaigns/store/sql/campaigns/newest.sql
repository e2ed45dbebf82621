SELECT {columns} FROM {schema}.campaigns
WHERE %(before)s::text IS NULL OR id < %(before)s ORDER BY id DESC LIMIT %(limit)s
