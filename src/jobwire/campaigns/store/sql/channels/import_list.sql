-- Lists the channels of pg_temp.jobwire_import in a batch. Of several with one username the active one is listed.
WITH wanted AS (
    SELECT DISTINCT ON (lower(c.username)) c.id
    FROM (SELECT DISTINCT lower(username) AS key FROM pg_temp.jobwire_import) l
    JOIN {schema}.channels c ON lower(c.username) = l.key
    ORDER BY lower(c.username), c.is_active DESC, c.id),
listed AS (
    INSERT INTO {schema}.batch_channels (batch_id, channel_id) SELECT %(batch_id)s, id FROM wanted
    ON CONFLICT DO NOTHING RETURNING 1)
SELECT count(*) FROM listed
