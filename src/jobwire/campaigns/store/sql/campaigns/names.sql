SELECT name FROM {schema}.campaigns ORDER BY id DESC LIMIT 1000
