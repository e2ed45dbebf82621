-- Returns figures of queues that share a table. No count goes beyond a limit, and each is read from one range of an index: with LIMIT and
-- the order of an index, so that the server stops there. Of finished jobs no index has the state, so the newest are counted, whatever it is.
-- The turnover is counted from the time of the last reading, by indexes of times. The list of states repeats the condition of the index
-- that has them.
SELECT q.name,
    queued.ready, queued.later, active.jobs, finished.completed, failed.jobs, finished.cancelled,
    queued.blocked, --? blocked
    0, --! blocked
    finished.looked_at, queued.oldest,
    EXISTS (SELECT FROM {side}.held h WHERE h.name = q.name), --? side
    false, --! side
    moved.added, moved.completed, moved.failed, --? since
    0, 0, 0, --! since
    {now}
FROM unnest(:queues::text[]) q (name)
CROSS JOIN LATERAL (
    SELECT sum(ready.jobs)::bigint AS ready, min(ready.oldest) AS oldest, sum(later.jobs)::bigint AS later
        , sum(blocked.jobs)::bigint AS blocked --? blocked
    FROM (VALUES ('created'::{schema}.job_state), ('retry')) s (state)
    CROSS JOIN LATERAL (
        SELECT count(*) AS jobs, min(w.start_after) AS oldest FROM (
            SELECT j.start_after FROM {job} j
            WHERE j.name = q.name AND j.state = s.state AND j.state IN ('created', 'retry', 'active', 'failed') AND j.start_after <= {now}
                AND NOT j.blocked --? blocked
            ORDER BY j.start_after LIMIT :most
        ) w
    ) ready
    CROSS JOIN LATERAL (
        SELECT count(*) AS jobs FROM (
            SELECT FROM {job} j
            WHERE j.name = q.name AND j.state = s.state AND j.state IN ('created', 'retry', 'active', 'failed') AND j.start_after > {now}
                AND NOT j.blocked --? blocked
            ORDER BY j.start_after LIMIT :most
        ) w
    ) later
    CROSS JOIN LATERAL ( --? blocked
        SELECT count(*) AS jobs FROM ( --? blocked
            SELECT FROM {job} j --? blocked
            WHERE j.name = q.name AND j.state = s.state AND j.state IN ('created', 'retry', 'active', 'failed') AND j.blocked --? blocked
            ORDER BY j.start_after LIMIT :most --? blocked
        ) w --? blocked
    ) blocked --? blocked
) queued
CROSS JOIN LATERAL (
    SELECT count(*) AS jobs FROM (SELECT FROM {job} j WHERE j.name = q.name AND j.state = 'active' LIMIT :most) w
) active
CROSS JOIN LATERAL (
    SELECT count(*) AS jobs FROM (SELECT FROM {job} j WHERE j.name = q.name AND j.state = 'failed' LIMIT :most) w
) failed
CROSS JOIN LATERAL (
    SELECT count(*) AS looked_at, count(*) FILTER (WHERE w.state = 'completed') AS completed,
        count(*) FILTER (WHERE w.state = 'cancelled') AS cancelled
    FROM (
        SELECT j.state FROM {job} j WHERE j.name = q.name AND j.completed_on > '-infinity'
        ORDER BY j.completed_on DESC LIMIT :most
    ) w
) finished
CROSS JOIN LATERAL ( --? since
    SELECT a.jobs AS added, f.completed, f.failed FROM ( --? since
        SELECT count(*) AS jobs FROM ( --? since
            SELECT FROM {job} j WHERE j.name = q.name AND j.created_on > :since::timestamptz --? since
            ORDER BY j.created_on LIMIT 10 * :most::bigint --? since
        ) w --? since
    ) a, ( --? since
        SELECT count(*) FILTER (WHERE w.state = 'completed') AS completed, count(*) FILTER (WHERE w.state = 'failed') AS failed --? since
        FROM ( --? since
            SELECT j.state FROM {job} j WHERE j.name = q.name AND j.completed_on > :since::timestamptz --? since
            ORDER BY j.completed_on LIMIT 10 * :most::bigint --? since
        ) w --? since
    ) f --? since
) moved --? since
