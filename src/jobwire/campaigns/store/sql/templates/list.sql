SELECT {columns} FROM {schema}.templates WHERE id > %(after)s ORDER BY id LIMIT %(limit)s
