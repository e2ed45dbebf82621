INSERT INTO {schema}.campaign_sending (campaign_id, prepared_at) VALUES (%(campaign_id)s, now())
ON CONFLICT (campaign_id) DO UPDATE SET prepared_at = now()
