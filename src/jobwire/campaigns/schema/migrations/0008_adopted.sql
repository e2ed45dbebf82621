-- A started campaign of another program that has jobs keeps them, and gets no others. Channels without a job got their
-- message perhaps, and their row was deleted: the application that the tables come from deletes rows of sent messages
-- after 90 days. Our own campaigns are marked in the transaction that creates their jobs.
INSERT INTO campaign_sending (campaign_id, prepared_at)
SELECT c.id, now() FROM campaigns c
WHERE c.status IN ('RUNNING', 'PAUSED') AND c.total_jobs > 0 AND EXISTS (SELECT 1 FROM jobs j WHERE j.campaign_id = c.id)
ON CONFLICT (campaign_id) DO UPDATE SET prepared_at = now() WHERE campaign_sending.prepared_at IS NULL;
