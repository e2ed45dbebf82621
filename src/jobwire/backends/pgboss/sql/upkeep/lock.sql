-- Waits for the advisory lock that clients of the schema take for one purpose.
SELECT pg_advisory_xact_lock(:lock::bigint)
