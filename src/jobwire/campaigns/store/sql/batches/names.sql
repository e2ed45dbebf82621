SELECT name FROM {schema}.batches ORDER BY id DESC LIMIT 1000
