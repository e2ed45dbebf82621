SELECT {columns} FROM {schema}.batches WHERE id > %(after)s ORDER BY id LIMIT %(limit)s
