SELECT {columns} FROM {schema}.batches WHERE id = %(key)s OR name = %(key)s ORDER BY id
