-- Adds the channels of pg_temp.jobwire_import that are new. An existing channel of the same username, active or not,
-- is left as it is. Returns the numbers of added, existing and inactive channels, and of repeated lines.
WITH distinct_lines AS MATERIALIZED (
    SELECT DISTINCT ON (lower(username)) lower(username) AS key, username, category
    FROM pg_temp.jobwire_import ORDER BY lower(username), line),
known AS MATERIALIZED (
    SELECT l.key, bool_or(c.is_active) AS is_active
    FROM distinct_lines l JOIN {schema}.channels c ON lower(c.username) = l.key GROUP BY l.key),
added AS (
    INSERT INTO {schema}.channels (id, username, category)
    SELECT %(prefix)s || {next_id}, l.username, l.category
    FROM distinct_lines l WHERE NOT EXISTS (SELECT 1 FROM known k WHERE k.key = l.key)
    ON CONFLICT (lower(username)) WHERE is_active DO NOTHING
    RETURNING 1),
counted AS (
    SELECT (SELECT count(*) FROM added) AS added, (SELECT count(*) FROM distinct_lines) AS usernames,
        (SELECT count(*) FROM known WHERE NOT is_active) AS inactive,
        (SELECT count(*) FROM pg_temp.jobwire_import) AS lines)
SELECT added, usernames - added, inactive, lines - usernames FROM counted
