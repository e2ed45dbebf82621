SELECT {columns} FROM {schema}.users WHERE id = %(key)s OR username = %(key)s ORDER BY id
