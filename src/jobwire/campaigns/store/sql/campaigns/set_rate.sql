-- The next message is planned a step after the last one: with the rate, the step changes.
WITH changed AS (
    UPDATE {schema}.campaigns SET delivery_rate = %(rate)s, updated_at = now()
    WHERE id = %(id)s AND status = ANY(%(sources)s) RETURNING {columns}),
shifted AS (
    SELECT changed.id, %(minute)s::float8 / changed.delivery_rate - %(minute)s::float8 / before.delivery_rate AS seconds
    FROM changed JOIN {schema}.campaigns before ON before.id = changed.id),
moved AS (
    UPDATE {schema}.campaign_sending s
    SET next_at = s.next_at + make_interval(secs => shifted.seconds),
        fed_until = s.fed_until + make_interval(secs => shifted.seconds)
    FROM shifted WHERE shifted.id = s.campaign_id RETURNING 1)
SELECT {columns} FROM changed
