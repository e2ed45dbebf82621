-- Deletes side data of jobs that peers have deleted, and windows that closed a day ago.
WITH p AS (
    DELETE FROM {side}.progress x
    WHERE x.name = :queue AND NOT EXISTS (SELECT FROM {job} j WHERE j.name = x.name AND j.id = x.id)
), l AS (
    DELETE FROM {side}.log x
    WHERE x.name = :queue AND NOT EXISTS (SELECT FROM {job} j WHERE j.name = x.name AND j.id = x.id)
), t AS (
    DELETE FROM {side}.stall x
    WHERE x.name = :queue AND NOT EXISTS (SELECT FROM {job} j WHERE j.name = x.name AND j.id = x.id)
)
DELETE FROM {side}.pace x WHERE x.name = :queue AND x.until < {now} - interval '1 day'
