SELECT name FROM {schema}.templates ORDER BY id DESC LIMIT 1000
