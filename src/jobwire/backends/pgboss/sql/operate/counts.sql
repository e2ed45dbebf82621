-- Returns the number of a queue's jobs in each state.
SELECT
    count(*) FILTER (WHERE j.state < 'active' AND j.start_after <= {now}
        AND NOT j.blocked --? blocked
    ),
    count(*) FILTER (WHERE j.state < 'active' AND j.start_after > {now}
        AND NOT j.blocked --? blocked
    ),
    count(*) FILTER (WHERE j.state = 'active'),
    count(*) FILTER (WHERE j.state = 'completed'),
    count(*) FILTER (WHERE j.state = 'failed'),
    count(*) FILTER (WHERE j.state = 'cancelled'),
    count(*) FILTER (WHERE j.state < 'active' AND j.blocked) --? blocked
    0 --! blocked
FROM {job} j
WHERE j.name = :queue
