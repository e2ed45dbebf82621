-- What the next messages of a running campaign need, and the times between which they fit. The template of an adopted
-- campaign may be missing.
SELECT c.id AS campaign_id, c.delivery_rate, c.retry_limit, c.params, c.template_id, t.content, t.media_type,
    t.media_url,
    greatest(p.fed_until, p.next_at, now.moment) AS first, now.moment AS now
FROM {schema}.campaigns c
JOIN {schema}.campaign_sending p ON p.campaign_id = c.id
LEFT JOIN {schema}.templates t ON t.id = c.template_id
CROSS JOIN (SELECT clock_timestamp() AS moment) now
WHERE c.id = %(campaign_id)s AND c.status = 'RUNNING' AND p.prepared_at IS NOT NULL
