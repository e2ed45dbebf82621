-- Locks a campaign for this transaction, in which statements walk its jobs in the order of their ids. Without statistics,
-- as just after the jobs were created, the planner takes a bitmap for that, and reads and sorts them all.
SELECT pg_try_advisory_xact_lock(%(lock)s, hashtext(%(schema)s || ' ' || %(campaign_id)s)),
    set_config('enable_bitmapscan', 'off', true)
