-- The reason is the code of capitals that a stored message begins with. Messages of other programs have none.
SELECT coalesce(substring(error_message FROM '^([A-Z][A-Z0-9_]*):'), 'OTHER') AS reason, count(*) AS count,
    min(error_message) AS example
FROM {schema}.jobs WHERE campaign_id = %(campaign_id)s AND status = 'FAILED'
GROUP BY 1 ORDER BY 2 DESC, 1
