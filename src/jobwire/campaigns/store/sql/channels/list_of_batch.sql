SELECT {columns} FROM {schema}.channels
WHERE id IN (
    SELECT b.channel_id FROM {schema}.batch_channels b JOIN {schema}.channels c ON c.id = b.channel_id
    WHERE b.batch_id = %(batch_id)s AND b.channel_id > %(after)s
        AND (%(active)s::boolean IS NULL OR c.is_active = %(active)s)
    ORDER BY b.channel_id LIMIT %(limit)s)
ORDER BY id
