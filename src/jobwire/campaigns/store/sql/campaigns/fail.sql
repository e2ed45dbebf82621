UPDATE {schema}.campaigns SET status = 'FAILED', error = %(error)s, completed_at = now(), updated_at = now()
WHERE id = %(id)s AND status = ANY(%(sources)s) RETURNING {columns}
