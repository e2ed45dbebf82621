-- Returns the lines of a job's log, newest first: all, or as many as asked for.
SELECT line FROM {side}.log WHERE name = :queue AND id = :id::uuid ORDER BY line_no DESC LIMIT nullif(:last::integer, 0)
