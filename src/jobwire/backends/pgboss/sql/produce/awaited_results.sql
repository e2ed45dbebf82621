-- Returns the outputs of the completed jobs that a job has waited for.
SELECT p.name, p.id, p.output
FROM {schema}.job_dependency d JOIN {schema}.job p ON p.name = d.parent_name AND p.id = d.parent_id
WHERE d.child_name = :queue AND d.child_id = :id::uuid AND p.state = 'completed'
