-- Stores which jobs wait for which.
INSERT INTO {schema}.job_dependency (child_name, child_id, parent_name, parent_id)
SELECT * FROM ROWS FROM (
    unnest(:child_names::text[]), unnest(:child_ids::uuid[]), unnest(:parent_names::text[]), unnest(:parent_ids::uuid[])
) AS d (child_name, child_id, parent_name, parent_id)
ON CONFLICT DO NOTHING
