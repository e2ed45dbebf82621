SELECT {columns} FROM {schema}.users WHERE id > %(after)s ORDER BY id LIMIT %(limit)s
