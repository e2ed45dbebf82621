-- Suspends counting after it took long: the longer it took, the longer.
UPDATE {schema}.version SET monitor_backoff_on = {now} + least(3600, greatest(
    2 * extract(epoch FROM current_setting('autovacuum_naptime')::interval), least(:took::float8, 600)
)) * interval '1 second'
WHERE :took::float8 > extract(epoch FROM current_setting('autovacuum_naptime')::interval) / 10
