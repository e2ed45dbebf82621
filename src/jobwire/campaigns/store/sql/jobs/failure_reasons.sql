-- The same reasons as in report_reasons, of a bounded number of failed messages. The order by a range of one state makes
-- the planner walk the index: it would read the table to find a few rows of a frequent state.
SELECT coalesce(substring(error_message FROM '^([A-Z][A-Z0-9_]*):'), 'OTHER') AS reason, count(*) AS count,
    min(error_message) AS example
FROM (
    SELECT error_message FROM {schema}.jobs
    WHERE campaign_id = %(campaign_id)s AND status BETWEEN 'FAILED' AND 'FAILED'
    ORDER BY status LIMIT %(most)s) failed
GROUP BY 1 ORDER BY 2 DESC, 1
