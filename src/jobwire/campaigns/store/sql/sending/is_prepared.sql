SELECT EXISTS (
    SELECT 1 FROM {schema}.campaign_sending WHERE campaign_id = %(campaign_id)s AND prepared_at IS NOT NULL)
