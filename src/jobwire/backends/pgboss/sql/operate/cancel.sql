-- Cancels jobs that have not finished, active ones too, as pg-boss does.
WITH was AS (
    SELECT j.id, j.state FROM {job} j WHERE j.name = :queue AND j.id = ANY (:ids::uuid[]) FOR UPDATE
), stopped AS (
    UPDATE {job} j SET state = 'cancelled', completed_on = {now}
    FROM was w
    WHERE j.name = :queue AND j.id = w.id AND w.state < 'completed'
    RETURNING j.id
)
SELECT w.id, w.state, s.id IS NOT NULL FROM was w LEFT JOIN stopped s ON s.id = w.id
