SELECT pg_try_advisory_xact_lock(%(lock)s, hashtext(%(schema)s || ' ' || %(campaign_id)s))
