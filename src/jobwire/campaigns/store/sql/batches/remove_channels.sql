WITH removed AS (
    DELETE FROM {schema}.batch_channels
    WHERE batch_id = %(batch_id)s AND channel_id = ANY(%(channel_ids)s::text[]) RETURNING 1)
SELECT count(*) FROM removed
