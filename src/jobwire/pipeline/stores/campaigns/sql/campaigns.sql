-- The campaigns of a range of ids, with the names of what they refer to.
SELECT
    j.id,
    j.name,
    j.description,
    b.name AS batch,
    t.name AS template,
    j.params::text AS params,
    j.mode,
    j.delivery_rate,
    j.retry_limit,
    j.status,
    j.progress,
    j.total_jobs,
    j.sent,
    j.failed,
    {created_at} AS created_at,
    {updated_at} AS updated_at,
    {started_at} AS started_at,
    {completed_at} AS completed_at,
    u.username AS created_by,
    {paused_until} AS paused_until,
    j.paused_reason,
    j.error,
    {malformed} AS malformed
FROM {schema}.campaigns j
LEFT JOIN {schema}.batches b ON b.id = j.batch_id
LEFT JOIN {schema}.templates t ON t.id = j.template_id
LEFT JOIN {schema}.users u ON u.id = j.created_by_id
WHERE {condition}
