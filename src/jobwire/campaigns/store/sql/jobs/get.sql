SELECT {columns} FROM {schema}.jobs WHERE id = %(key)s
