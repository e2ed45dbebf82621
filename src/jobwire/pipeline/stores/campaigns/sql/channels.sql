-- The channels of a range of ids.
SELECT
    j.id,
    j.username,
    j.category,
    j.is_active,
    j.error_count,
    j.last_error,
    {created_at} AS created_at,
    {updated_at} AS updated_at,
    {malformed} AS malformed
FROM {schema}.channels j
WHERE {condition}
