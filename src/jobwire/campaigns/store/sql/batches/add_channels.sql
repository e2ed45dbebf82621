WITH added AS (
    INSERT INTO {schema}.batch_channels (batch_id, channel_id)
    SELECT DISTINCT %(batch_id)s, listed FROM unnest(%(channel_ids)s::text[]) AS listed
    ON CONFLICT DO NOTHING RETURNING 1)
SELECT count(*) FROM added
