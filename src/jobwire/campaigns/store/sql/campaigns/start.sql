UPDATE {schema}.campaigns SET status = 'RUNNING', started_at = now(), updated_at = now()
WHERE id = %(id)s AND status = ANY(%(sources)s) RETURNING {columns}
