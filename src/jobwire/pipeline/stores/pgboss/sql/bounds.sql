-- Ids that part the jobs into slices of one size, from all of them or from those in some of the table's blocks.
SELECT count(*), percentile_disc($1::float8[]) WITHIN GROUP (ORDER BY j.id)::text[]
FROM {job} j {sample}
WHERE {condition}
