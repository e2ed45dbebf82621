-- What jobwire keeps of jobs that were put back.
INSERT INTO {side}.progress (name, id, value)
SELECT $1, p.id, p.value FROM unnest($2::uuid[], $3::text[]) AS p (id, value)
ON CONFLICT DO NOTHING
