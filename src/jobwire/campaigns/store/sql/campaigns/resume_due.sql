-- Campaigns that another transaction is changing are left out: the next call sees them.
UPDATE {schema}.campaigns SET status = 'RUNNING', paused_until = NULL, paused_reason = NULL, updated_at = now()
WHERE id IN (
    SELECT id FROM {schema}.campaigns WHERE status = 'PAUSED' AND paused_until <= now()
    ORDER BY id FOR NO KEY UPDATE SKIP LOCKED)
RETURNING {columns}
