-- Returns schedules, of one queue or of all, with the database's time.
SELECT s.name, s.key, s.cron, coalesce(s.timezone, 'UTC'), s.data, s.options, s.created_on, {now}
    , s.kind --? schedule.kind
    , 'cron' --! schedule.kind
FROM {schema}.schedule s
WHERE s.name = :queue --? of_queue
ORDER BY s.name, s.key
