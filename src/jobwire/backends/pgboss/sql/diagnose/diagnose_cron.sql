-- Returns the number of schedules, and the age of the last pass over them.
SELECT (SELECT count(*) FROM {schema}.schedule), extract(epoch FROM {now} - v.cron_on)::float8, --? version.cron_on
SELECT (SELECT count(*) FROM {schema}.schedule), NULL::float8, --! version.cron_on
    extract(epoch FROM {now} - (SELECT min(s.created_on) FROM {schema}.schedule s))::float8 --? schedule.created_on
    0::float8 --! schedule.created_on
FROM {schema}.version v
