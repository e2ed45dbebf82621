-- Wait for the advisory lock that clients of the schema take for a purpose.
SELECT pg_advisory_xact_lock(:lock::bigint)
