-- A pause by a person has no end, and is left as it is.
UPDATE {schema}.campaigns
SET status = 'PAUSED', paused_reason = %(reason)s, updated_at = now(),
    paused_until = greatest(CASE WHEN status = 'PAUSED' THEN paused_until END, now() + make_interval(secs => %(seconds)s))
WHERE id = %(id)s AND (status = ANY(%(sources)s) OR (status = 'PAUSED' AND paused_until IS NOT NULL))
RETURNING {columns}
