-- Claims the turn to clean the queues that are due. Returns their names and tables.
WITH turn AS (
    SELECT q.name FROM {schema}.queue q
    WHERE coalesce(q.maintain_on, '-infinity') <= {now} - :every::float8 * interval '1 second'
    ORDER BY q.name
    FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE {schema}.queue q SET maintain_on = {now} FROM turn WHERE q.name = turn.name RETURNING q.name, q.table_name
