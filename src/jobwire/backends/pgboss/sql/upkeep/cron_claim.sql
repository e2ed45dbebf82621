-- Claims the turn for a pass over the schedules, if one is due. Returns the time of the last pass. Where rules are stored that only Node can
-- read, the turn is left to Node: a pass of ours would keep it from making its own.
WITH turn AS (
    SELECT v.cron_on, v.version FROM {schema}.version v
    WHERE (v.cron_on IS NULL OR v.cron_on <= {now} - :every::float8 * interval '1 second')
        AND NOT EXISTS (SELECT FROM {schema}.schedule s WHERE s.kind <> 'cron') --? schedule.kind
    FOR UPDATE SKIP LOCKED
)
UPDATE {schema}.version v SET cron_on = {now} FROM turn WHERE v.version = turn.version RETURNING turn.cron_on
