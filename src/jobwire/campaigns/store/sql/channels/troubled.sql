-- Walks the index of channels in trouble. Those of one batch are looked up among the first of them.
SELECT {columns} FROM (
    SELECT * FROM {schema}.channels
    WHERE (error_count > 0 OR NOT is_active) AND is_active = %(active)s
    ORDER BY updated_at DESC NULLS LAST LIMIT 10 * %(most)s) c
WHERE %(batch_id)s::text IS NULL OR EXISTS (
    SELECT 1 FROM {schema}.batch_channels b WHERE b.batch_id = %(batch_id)s AND b.channel_id = c.id)
LIMIT %(most)s
