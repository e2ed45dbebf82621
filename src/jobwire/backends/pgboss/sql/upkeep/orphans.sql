-- Deletes dependencies of jobs that do not exist any more.
DELETE FROM {schema}.job_dependency d
WHERE d.child_name = :queue AND NOT EXISTS (
    SELECT FROM {schema}.job j WHERE j.name = d.child_name AND j.id = d.child_id
)
