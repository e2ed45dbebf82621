-- Returns the seconds until the next job of a queue is due, null if none will be.
SELECT extract(epoch FROM least(
    (
        SELECT j.start_after FROM {job} j
        WHERE j.name = :queue AND j.state = 'created' AND j.start_after > {now} AND j.start_after < 'infinity'
            AND NOT j.blocked --? blocked
        ORDER BY j.start_after LIMIT 1
    ),
    (
        SELECT j.start_after FROM {job} j
        WHERE j.name = :queue AND j.state = 'retry' AND j.start_after > {now} AND j.start_after < 'infinity'
            AND NOT j.blocked --? blocked
        ORDER BY j.start_after LIMIT 1
    )
) - {now})::float8
