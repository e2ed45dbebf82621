-- Adds nothing if the username exists, also with an inactive channel: it is inactive for a reason.
INSERT INTO {schema}.channels (id, username, category)
SELECT %(id)s, %(username)s, %(category)s
WHERE NOT EXISTS (SELECT 1 FROM {schema}.channels WHERE lower(username) = lower(%(username)s))
ON CONFLICT (lower(username)) WHERE is_active DO NOTHING
RETURNING {columns}
