-- Returns the lines of a job's log, oldest first.
SELECT line FROM {side}.log WHERE name = :queue AND id = :id::uuid ORDER BY line_no
