-- The same reasons as in report_reasons, of a bounded number of failed messages. The order is that of the index of
-- messages with errors, so that the planner walks it: it would read the table to find a few rows of a frequent state.
SELECT coalesce(substring(error_message FROM '^([A-Z][A-Z0-9_]*):'), 'OTHER') AS reason, count(*) AS count,
    min(error_message) AS example
FROM (
    SELECT error_message FROM {schema}.jobs
    WHERE campaign_id = %(campaign_id)s AND error_message IS NOT NULL AND status = 'FAILED'
    ORDER BY id LIMIT %(most)s) failed
GROUP BY 1 ORDER BY 2 DESC, 1
