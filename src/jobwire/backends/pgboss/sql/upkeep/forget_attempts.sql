-- Deletes attempts that were remembered for long enough.
DELETE FROM {side}.attempt a WHERE a.name = :queue AND a.keep_until < {now}
