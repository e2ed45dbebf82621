-- When the nth creation and the nth end of a job after a time happened.
SELECT
    (
        SELECT (extract(epoch FROM j.created_on) * 1000000)::bigint FROM {job} j
        WHERE j.name = $1 AND j.created_on > {from} ORDER BY j.created_on OFFSET $2 LIMIT 1
    ),
    (
        SELECT (extract(epoch FROM j.completed_on) * 1000000)::bigint FROM {job} j
        WHERE j.name = $1 AND j.completed_on > {from} ORDER BY j.completed_on OFFSET $2 LIMIT 1
    )
