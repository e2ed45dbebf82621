-- Jobs of one state in the order in which they would run, finished ones newest first, after the one that a cursor names.
SELECT
{columns}
FROM {job} j
WHERE j.name = :queue
    AND j.state < 'active' AND j.start_after <= {now} --? page_waiting
    AND j.state < 'active' AND j.start_after > {now} --? page_delayed
    AND j.state < 'active' --? page_blocked
    AND NOT j.blocked --? page_waiting blocked
    AND NOT j.blocked --? page_delayed blocked
    AND j.blocked --? page_blocked
    AND j.state = 'active' --? page_active
    AND j.state = 'completed' --? page_completed
    AND j.state = 'failed' --? page_failed
    AND j.state = 'cancelled' --? page_cancelled
    AND (-j.priority::bigint, j.created_on, j.id) > (:number::bigint, :moment::timestamptz, :id::uuid) --? page_waiting after
    AND (j.start_after, j.created_on, j.id) > (:due::timestamptz, :moment::timestamptz, :id::uuid) --? page_delayed after
    AND (j.created_on, j.id) > (:moment::timestamptz, :id::uuid) --? page_blocked after
    AND (j.started_on, j.id) > (:moment::timestamptz, :id::uuid) --? page_active after
    AND (j.completed_on, j.id) < (:moment::timestamptz, :id::uuid) --? page_finished after
ORDER BY
    j.priority DESC, j.created_on, j.id --? page_waiting
    j.start_after, j.created_on, j.id --? page_delayed
    j.created_on, j.id --? page_blocked
    j.started_on, j.id --? page_active
    j.completed_on DESC, j.id DESC --? page_finished
LIMIT :limit
