SELECT username FROM {schema}.channels ORDER BY id DESC LIMIT 1000
