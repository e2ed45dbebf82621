SELECT campaign_id FROM {schema}.campaign_feeding
WHERE seen_at < now() - make_interval(secs => %(age)s) AND (checked_id <> seen_id OR seen_id <> fed_id)
ORDER BY campaign_id
