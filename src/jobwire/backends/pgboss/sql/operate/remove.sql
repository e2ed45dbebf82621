-- Deletes jobs that are not active, with their side data.
WITH was AS (
    SELECT j.id, j.state FROM {job} j WHERE j.name = :queue AND j.id = ANY (:ids::uuid[]) FOR UPDATE
), gone AS (
    DELETE FROM {job} j USING was w WHERE j.name = :queue AND j.id = w.id AND w.state <> 'active' RETURNING j.id
{forget_side}
)
SELECT w.id, w.state, g.id IS NOT NULL FROM was w LEFT JOIN gone g ON g.id = w.id
