-- Returns jobs of one state after the one that a cursor names: in the order in which they would run, failed ones newest first. Backward: in
-- the opposite order. A foreign client's row without the time that jobs are sorted by comes first in time. Other states have statements
-- of their own. The columns are made of the chosen rows only: to make them of a row takes twenty times as long as to sort or skip it.
SELECT
{columns}
FROM (
    SELECT j.* FROM {job} j
    WHERE j.name = :queue
        AND j.state < 'active' AND j.start_after <= {now} --? page_waiting
        AND j.state < 'active' --? page_blocked
        AND NOT j.blocked --? page_waiting blocked
        AND j.blocked --? page_blocked
        AND j.state = 'active' --? page_active
        AND j.state = 'failed' --? page_failed
        AND (-j.priority::bigint, j.created_on, j.id) > (:number::bigint, :moment::timestamptz, :id::uuid) --? page_waiting after forward
        AND (-j.priority::bigint, j.created_on, j.id) < (:number::bigint, :moment::timestamptz, :id::uuid) --? page_waiting after backward
        AND j.priority <= -(:number::bigint) --? page_waiting after forward
        AND j.priority >= -(:number::bigint) --? page_waiting after backward
        AND (j.created_on, j.id) > (:moment::timestamptz, :id::uuid) --? page_blocked after forward
        AND (j.created_on, j.id) < (:moment::timestamptz, :id::uuid) --? page_blocked after backward
        AND (coalesce(j.started_on, '-infinity'), j.id) > (:moment::timestamptz, :id::uuid) --? page_active after forward
        AND (coalesce(j.started_on, '-infinity'), j.id) < (:moment::timestamptz, :id::uuid) --? page_active after backward
        AND (coalesce(j.completed_on, '-infinity'), j.id) < (:moment::timestamptz, :id::uuid) --? page_failed after forward
        AND (coalesce(j.completed_on, '-infinity'), j.id) > (:moment::timestamptz, :id::uuid) --? page_failed after backward
    ORDER BY
        j.priority DESC, j.created_on, j.id --? page_waiting forward
        j.priority, j.created_on DESC, j.id DESC --? page_waiting backward
        j.created_on, j.id --? page_blocked forward
        j.created_on DESC, j.id DESC --? page_blocked backward
        coalesce(j.started_on, '-infinity'), j.id --? page_active forward
        coalesce(j.started_on, '-infinity') DESC, j.id DESC --? page_active backward
        coalesce(j.completed_on, '-infinity') DESC, j.id DESC --? page_failed forward
        coalesce(j.completed_on, '-infinity'), j.id --? page_failed backward
    LIMIT :limit
    OFFSET :skip --? skip
) j
