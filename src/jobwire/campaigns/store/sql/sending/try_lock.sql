-- Locks a campaign for this transaction, in which statements walk its jobs: see jobs/walk_indexes.sql.
SELECT pg_try_advisory_xact_lock(%(lock)s, hashtext(%(schema)s || ' ' || %(campaign_id)s)),
    set_config('enable_bitmapscan', 'off', true)
