SELECT c.id AS campaign_id, p.prepared_at IS NOT NULL AS prepared
FROM {schema}.campaigns c LEFT JOIN {schema}.campaign_sending p ON p.campaign_id = c.id
WHERE c.status = 'RUNNING' ORDER BY c.id
