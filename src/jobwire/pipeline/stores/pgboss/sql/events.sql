-- Events derived from the rows: a job's creation, the start of its last run, how that ended. A row that was finished before
-- {from} can't have a start after it that was not told before.
SELECT e.job || ':' || e.run || ':' || e.kind || ':' || (extract(epoch FROM e.at) * 1000000)::bigint AS id,
    e.kind AS kind, e.job AS job_id, e.at AS at, e.data AS data
FROM (
    SELECT j.id::text AS job, 0 AS run, 'created' AS kind, j.created_on AS at,
        '{{"priority":' || j.priority -- after a failure, start_after is the due time of the next attempt
        || CASE WHEN j.retry_count = 0 AND j.state <> 'retry' THEN ',"start_after":' || to_json(j.start_after) ELSE '' END
        || '}}' AS data
    FROM {job} j
    WHERE {condition} AND j.created_on > {from} AND j.created_on <= {until}
    UNION ALL
    SELECT j.id::text, j.retry_count, 'active', j.started_on,
        '{{"retry_count":' || j.retry_count
        || CASE WHEN j.retry_count > 0 AND j.start_after <= j.started_on THEN ',"ready":' || to_json(j.start_after) ELSE '' END
        || '}}'
    FROM {job} j
    WHERE {condition} AND j.started_on > {from} AND j.started_on <= {until}
        AND (j.state IN ('created', 'retry', 'active') OR j.completed_on > {from})
    UNION ALL
    SELECT j.id::text, j.retry_count, j.state::text, j.completed_on,
        '{{"retry_count":' || j.retry_count || coalesce(',"started_on":' || to_json(j.started_on), '')
        || coalesce(',"error":' || to_json(CASE WHEN j.state <> 'completed' THEN {error} END), '') || '}}'
    FROM {job} j
    WHERE {condition} AND j.completed_on > {from} AND j.completed_on <= {until} AND j.state > 'active'
    UNION ALL
    SELECT j.id::text, j.retry_count, 'retry', {retried},
        '{{"retry_count":' || j.retry_count || coalesce(',"started_on":' || to_json(j.started_on), '')
        || coalesce(',"error":' || to_json({error}), '') || ',"estimated":' || j.retry_backoff || '}}'
    FROM {job} j
    WHERE {condition} AND j.state = 'retry' AND {retried} > {from} AND {retried} <= {until}
{remembered}
) e
