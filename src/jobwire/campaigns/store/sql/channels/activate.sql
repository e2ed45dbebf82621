UPDATE {schema}.channels SET is_active = true, error_count = 0, updated_at = now()
WHERE id = %(id)s RETURNING {columns}
