SELECT EXISTS (
    SELECT 1 FROM {schema}.campaigns
    WHERE status = 'RUNNING' OR (status = 'PAUSED' AND paused_until IS NOT NULL))
