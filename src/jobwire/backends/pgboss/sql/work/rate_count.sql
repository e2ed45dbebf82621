-- Counts starts in the windows of keys. A window that has closed is replaced by a new one.
INSERT INTO {side}.pace AS p (name, key, until, started)
SELECT :queue, k.key, clock_timestamp() + :period::float8 * interval '1 second', k.count
FROM ROWS FROM (unnest(:keys::text[]), unnest(:counts::integer[])) AS k (key, count)
ON CONFLICT (name, key) DO UPDATE SET
    started = CASE WHEN p.until <= clock_timestamp() THEN excluded.started ELSE p.started + excluded.started END,
    until = CASE WHEN p.until <= clock_timestamp() THEN excluded.until ELSE p.until END
