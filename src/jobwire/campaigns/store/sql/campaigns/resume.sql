UPDATE {schema}.campaigns SET status = 'RUNNING', paused_until = NULL, paused_reason = NULL, updated_at = now()
WHERE id = %(id)s AND status = ANY(%(sources)s) RETURNING {columns}
