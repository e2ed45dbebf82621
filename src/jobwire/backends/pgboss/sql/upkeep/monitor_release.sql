-- Gives back turns in which nothing was done.
UPDATE {schema}.queue
SET monitor_claim_on = NULL --? queue.monitor_claim_on
SET monitor_on = NULL --! queue.monitor_claim_on
WHERE name = ANY (:names::text[])
