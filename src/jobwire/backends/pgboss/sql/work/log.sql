-- Adds a line to a job's log, if the job exists, and deletes all but the newest lines if asked to.
WITH added AS (
    INSERT INTO {side}.log (name, id, line)
    SELECT j.name, j.id, :line FROM {job} j WHERE j.name = :queue AND j.id = :id::uuid
    RETURNING line_no
), cut AS (
    DELETE FROM {side}.log l
    WHERE :keep::integer > 0 AND l.name = :queue AND l.id = :id::uuid AND l.line_no IN (
        SELECT o.line_no FROM {side}.log o WHERE o.name = :queue AND o.id = :id::uuid
        ORDER BY o.line_no DESC OFFSET greatest(:keep::integer - 1, 0)
    )
)
SELECT 1 FROM added
