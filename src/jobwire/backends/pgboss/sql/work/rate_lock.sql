-- Locks the window of the queue. Returns the number of jobs that have started in it, and the seconds until it closes.
INSERT INTO {side}.pace AS p (name, key, until, started) VALUES (:queue, '', clock_timestamp(), 0)
ON CONFLICT (name, key) DO UPDATE SET started = CASE WHEN p.until <= clock_timestamp() THEN 0 ELSE p.started END
RETURNING p.started, greatest(extract(epoch FROM p.until - clock_timestamp()), 0)::float8
