-- Returns the seconds until the first full window of a key closes.
SELECT extract(epoch FROM min(p.until) - clock_timestamp())::float8
FROM {side}.pace p
WHERE p.name = :queue AND p.key <> '' AND p.until > clock_timestamp() AND p.started >= :most::integer
