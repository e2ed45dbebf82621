UPDATE {schema}.campaign_sending SET fed_until = %(until)s WHERE campaign_id = %(campaign_id)s
