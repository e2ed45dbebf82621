-- Delete finished jobs that are still as they were, and what jobwire keeps of them. A parent whose children still wait
-- to hear of its end is left to pg-boss.
WITH gone AS (
    DELETE FROM {job} j
    USING unnest($2::uuid[], $3::text[], $4::text[]) AS s (id, state, fingerprint)
    WHERE j.name = $1 AND j.id = s.id AND j.state > 'active' AND j.state::text = s.state
        AND {fingerprint} = s.fingerprint AND NOT {blocking}
    RETURNING j.id
){forgotten}
SELECT g.id::text FROM gone g
