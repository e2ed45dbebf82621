SELECT status FROM {schema}.campaigns WHERE id = %(id)s
