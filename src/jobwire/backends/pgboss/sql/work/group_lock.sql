-- Waits for other workers of jobwire that are claiming with a limit of groups. The lock is held until the claim is committed.
SELECT pg_advisory_xact_lock(hashtextextended('jobwire groups of ' || :queue || ' in {schema}', 0))
