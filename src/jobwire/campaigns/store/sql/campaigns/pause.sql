-- The second case: a wait for a flood limit, which would end by itself, becomes a pause by a person.
UPDATE {schema}.campaigns
SET status = 'PAUSED', paused_until = NULL, paused_reason = %(reason)s, updated_at = now()
WHERE id = %(id)s AND (status = ANY(%(sources)s) OR (status = 'PAUSED' AND paused_until IS NOT NULL))
RETURNING {columns}
