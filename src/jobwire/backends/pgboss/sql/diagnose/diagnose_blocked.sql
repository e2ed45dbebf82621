-- Returns jobs that wait for others which do not exist any more. Looks at a thousand blocked jobs.
SELECT b.id FROM (
    SELECT j.name, j.id FROM {job} j WHERE j.name = :queue AND j.blocked AND j.state IN ('created', 'retry') LIMIT 1000
) b
WHERE NOT EXISTS (
    SELECT FROM {schema}.job_dependency d JOIN {schema}.job p ON p.name = d.parent_name AND p.id = d.parent_id
    WHERE d.child_name = b.name AND d.child_id = b.id AND (p.state <> 'completed' OR p.blocking)
)
LIMIT 10
