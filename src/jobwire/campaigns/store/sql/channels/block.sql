UPDATE {schema}.channels SET is_active = false, last_error = %(error)s, updated_at = now()
WHERE id = %(id)s RETURNING {columns}
