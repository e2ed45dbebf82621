SELECT {columns} FROM {schema}.campaigns WHERE id = %(key)s OR name = %(key)s ORDER BY id
