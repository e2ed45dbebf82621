SELECT {columns} FROM {schema}.channels
WHERE id > %(after)s AND (%(active)s::boolean IS NULL OR is_active = %(active)s) ORDER BY id LIMIT %(limit)s
