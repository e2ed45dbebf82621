-- Creates or replaces the schedule of a key.
INSERT INTO {schema}.schedule (
    name, key, cron, timezone, data, options
    , kind --? schedule.kind
) VALUES (
    :queue, :key, :cron, :timezone, :data::jsonb, :options::jsonb
    , 'cron' --? schedule.kind
)
ON CONFLICT (name, key) DO UPDATE SET
    cron = excluded.cron,
    timezone = excluded.timezone,
    data = excluded.data,
    options = excluded.options,
    kind = excluded.kind, --? schedule.kind
    updated_on = {now}
