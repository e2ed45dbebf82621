-- The jobs of a slice in the columns of the table `jobs`. {error} and {stack} read a failure as the backend does.
SELECT
    j.id::text AS id,
    CASE
        WHEN j.state IN ('created', 'retry') THEN
            CASE WHEN {blocked} THEN 'waiting_children' WHEN j.start_after > {now} THEN 'delayed' ELSE 'waiting' END
        WHEN j.state IN ('active', 'completed', 'cancelled', 'failed') THEN j.state::text
    END AS state,
    j.state::text AS native_state,
    j.priority::bigint AS priority,
    least(j.retry_limit, 2147483646) + 1 AS attempts,
    CASE
        WHEN j.started_on IS NOT NULL AND j.state <> 'active' THEN least(j.retry_count, 2147483646) + 1
        ELSE j.retry_count
    END AS attempts_made,
    coalesce(j.data::text, 'null') AS payload,
    CASE WHEN j.state = 'completed' THEN {result} END AS result,
    CASE WHEN j.state <> 'completed' THEN {error} END AS error,
    CASE WHEN j.state <> 'completed' THEN {stack} END AS stacktrace,
    {progress} AS progress,
    j.singleton_key AS unique_key,
    {created_on} AS created_at,
    {start_after} AS run_at,
    {started_on} AS started_at,
    {completed_on} AS finished_at,
    {raw} AS raw,
    {fingerprint} AS fingerprint,
    {malformed} AS malformed
FROM {job} j
WHERE {condition}
