-- Remembers runs of jobs that were recovered. pg-boss has no word for them: they have the kind 'stalled' and no error.
INSERT INTO {side}.attempt (name, id, run, started_on, ended_on, due_on, keep_until, kind)
SELECT :queue, x.id, x.run, x.started_on, :at::timestamptz, :at::timestamptz, {now} + :keep::float8 * interval '1 second', 'stalled'
FROM unnest(:ids::uuid[], :attempts::integer[], :starts::timestamptz[]) AS x (id, run, started_on)
ON CONFLICT DO NOTHING
