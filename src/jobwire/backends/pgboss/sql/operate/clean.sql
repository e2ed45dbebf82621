-- Deletes the oldest jobs that have been in a state for longer than `age` seconds. Returns their ids.
WITH old AS (
    SELECT j.id FROM {job} j
    WHERE j.name = :queue
        AND j.state = 'completed' --? page_completed
        AND j.state = 'failed' --? page_failed
        AND j.state = 'cancelled' --? page_cancelled
        AND j.state < 'active' AND j.start_after <= {now} --? page_waiting
        AND j.state < 'active' AND j.start_after > {now} --? page_delayed
        AND j.completed_on <= {now} - :age::float8 * interval '1 second' --? page_finished
        AND j.created_on <= {now} - :age::float8 * interval '1 second' --! page_finished
    ORDER BY
        j.completed_on --? page_finished
        j.created_on --! page_finished
    LIMIT nullif(:limit::bigint, 0)
    FOR UPDATE SKIP LOCKED
)
DELETE FROM {job} j USING old WHERE j.name = :queue AND j.id = old.id RETURNING j.id
