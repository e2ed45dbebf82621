-- Deletes jobs that wait or are delayed, and what jobwire keeps of them.
WITH gone AS (
    DELETE FROM {job} j
    WHERE j.name = $1 AND j.id = ANY ($2::uuid[]) AND j.state < 'active' AND NOT {blocked}
    RETURNING j.id
){forgotten}
SELECT g.id::text FROM gone g
