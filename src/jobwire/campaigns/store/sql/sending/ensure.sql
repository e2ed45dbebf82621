INSERT INTO {schema}.campaign_sending (campaign_id)
SELECT id FROM {schema}.campaigns WHERE id = ANY(%(ids)s) ON CONFLICT (campaign_id) DO NOTHING
