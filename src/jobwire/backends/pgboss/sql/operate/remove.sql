-- Delete jobs that no worker runs, and what jobwire keeps of them.
WITH was AS (
    SELECT j.id, j.state FROM {job} j WHERE j.name = :queue AND j.id = ANY (:ids::uuid[]) FOR UPDATE
), gone AS (
    DELETE FROM {job} j USING was w WHERE j.name = :queue AND j.id = w.id AND w.state <> 'active' RETURNING j.id
), forgotten AS ( --? side
    DELETE FROM {side}.progress p USING gone g WHERE p.name = :queue AND p.id = g.id --? side
), unlogged AS ( --? side
    DELETE FROM {side}.log l USING gone g WHERE l.name = :queue AND l.id = g.id --? side
), forgiven AS ( --? side
    DELETE FROM {side}.stall t USING gone g WHERE t.name = :queue AND t.id = g.id --? side
)
SELECT w.id, w.state, g.id IS NOT NULL FROM was w LEFT JOIN gone g ON g.id = w.id
