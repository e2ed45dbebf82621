-- Reserves slots of the delivery rate, each a step after the one before: as many as are asked for, if they are not too
-- far ahead. A time that was not used is credited for a moment only, so that nothing is sent in bursts.
WITH asked AS MATERIALIZED (
    SELECT * FROM unnest(%(ids)s::text[], %(counts)s::integer[]) AS a (campaign_id, wanted)),
locked AS MATERIALIZED (
    SELECT campaign_id, next_at FROM {schema}.campaign_sending WHERE campaign_id = ANY(%(ids)s)
    ORDER BY campaign_id FOR NO KEY UPDATE),
timed AS MATERIALIZED (
    SELECT l.campaign_id, a.wanted, %(minute)s::float8 / c.delivery_rate AS step, clock_timestamp() AS now, l.next_at
    FROM locked l JOIN asked a USING (campaign_id) JOIN {schema}.campaigns c ON c.id = l.campaign_id),
planned AS MATERIALIZED (
    SELECT campaign_id, step, wanted,
        greatest(extract(epoch FROM next_at - now)::float8, - %(credit)s::float8) AS wait, now
    FROM timed),
granted AS MATERIALIZED (
    SELECT campaign_id, step, wait, now,
        least(wanted, greatest(0, floor((%(ahead)s::float8 - wait) / step) + 1))::integer AS slots
    FROM planned),
moved AS (
    UPDATE {schema}.campaign_sending p
    SET next_at = g.now + make_interval(secs => g.wait + g.slots * g.step)
    FROM granted g WHERE g.campaign_id = p.campaign_id AND g.slots > 0 RETURNING 1)
SELECT campaign_id, slots, wait, step FROM granted
