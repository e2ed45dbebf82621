SELECT {columns} FROM {schema}.channels WHERE id = %(key)s OR lower(username) = lower(%(username)s)
ORDER BY is_active DESC, id
