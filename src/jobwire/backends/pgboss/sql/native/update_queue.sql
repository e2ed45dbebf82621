-- Changes the settings of a queue that are in the JSON object. A null there clears a setting that may be empty.
UPDATE {schema}.queue SET
    retry_limit = CASE WHEN o ? 'retryLimit' THEN (o->>'retryLimit')::integer ELSE retry_limit END,
    retry_delay = CASE WHEN o ? 'retryDelay' THEN (o->>'retryDelay')::integer ELSE retry_delay END,
    retry_backoff = CASE WHEN o ? 'retryBackoff' THEN (o->>'retryBackoff')::boolean ELSE retry_backoff END,
    retry_delay_max = CASE WHEN o ? 'retryDelayMax' THEN (o->>'retryDelayMax')::integer ELSE retry_delay_max END,
    expire_seconds = CASE WHEN o ? 'expireInSeconds' THEN (o->>'expireInSeconds')::integer ELSE expire_seconds END,
    retention_seconds = CASE WHEN o ? 'retentionSeconds' THEN (o->>'retentionSeconds')::integer ELSE retention_seconds END,
    deletion_seconds = CASE WHEN o ? 'deleteAfterSeconds' THEN (o->>'deleteAfterSeconds')::integer ELSE deletion_seconds END,
    warning_queued = CASE WHEN o ? 'warningQueueSize' THEN (o->>'warningQueueSize')::integer ELSE warning_queued END,
    dead_letter = CASE WHEN o ? 'deadLetter' THEN o->>'deadLetter' ELSE dead_letter END,
    heartbeat_seconds = CASE WHEN o ? 'heartbeatSeconds' THEN (o->>'heartbeatSeconds')::integer ELSE heartbeat_seconds END, --? queue.heartbeat_seconds
    notify = CASE WHEN o ? 'notify' THEN (o->>'notify')::boolean ELSE notify END, --? queue.notify
    updated_on = {now}
FROM (SELECT :options::jsonb AS o) given
WHERE name = :queue
RETURNING 1
