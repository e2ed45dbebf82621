UPDATE {schema}.campaigns
SET status = 'CANCELLED', completed_at = now(), paused_until = NULL, paused_reason = NULL, updated_at = now()
WHERE id = %(id)s AND status = ANY(%(sources)s) RETURNING {columns}
