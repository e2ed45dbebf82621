-- Returns jobs by their ids.
SELECT
{columns}
FROM {job} j
WHERE j.name = :queue AND j.id = ANY (:ids::uuid[])
