SELECT {columns} FROM {schema}.templates WHERE id = %(key)s OR name = %(key)s ORDER BY id
