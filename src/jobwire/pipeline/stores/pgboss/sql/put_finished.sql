-- Store finished jobs, given as JSON by the names of the columns, unless a job of that id is there.
INSERT INTO {job} ({columns})
SELECT {columns} FROM json_populate_recordset(NULL::{schema}.job, $1::json)
ON CONFLICT DO NOTHING
RETURNING id
