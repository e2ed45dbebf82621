-- Give turns back that came to nothing.
UPDATE {schema}.queue
SET monitor_claim_on = NULL --? queue.monitor_claim_on
SET monitor_on = NULL --! queue.monitor_claim_on
WHERE name = ANY (:names::text[])
