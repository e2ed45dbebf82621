-- The rows of queues, and the transactions that wrote them: each change of a row gives it the number of a newer one.
SELECT j.name, count(*), sum(j.xmin::text::numeric)::text, max(j.xmin::text::bigint)
FROM {schema}.job j
WHERE j.name = ANY ($1)
GROUP BY j.name
ORDER BY j.name
