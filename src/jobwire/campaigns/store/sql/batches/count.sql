SELECT count(*) AS channels, count(*) FILTER (WHERE c.is_active) AS active
FROM {schema}.batch_channels b JOIN {schema}.channels c ON c.id = b.channel_id WHERE b.batch_id = %(batch_id)s
