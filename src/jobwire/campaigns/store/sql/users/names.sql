SELECT username FROM {schema}.users ORDER BY id DESC LIMIT 1000
