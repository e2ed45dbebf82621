-- Counts, once each, jobs that another client recovered from a worker of ours. Returns how often each job was recovered.
WITH x AS (
    UPDATE {job} j SET output = NULL
    WHERE j.name = :queue AND j.id = ANY (:ids::uuid[]) AND j.state::text = 'active' AND j.output IS NOT NULL
    RETURNING j.id
)
INSERT INTO {side}.stall AS t (name, id, times) SELECT :queue, x.id, 1 FROM x
ON CONFLICT (name, id) DO UPDATE SET times = least(t.times, 1000000) + 1
RETURNING t.id, t.times
