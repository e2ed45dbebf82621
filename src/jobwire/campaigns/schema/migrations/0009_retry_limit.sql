-- A retry limit of at most 1,000. The largest integers were accepted, and then no job could be claimed any more: the
-- limit and one are compared with the attempts, which is beyond the range. Jobs with more attempts than a lowered
-- limit allows fail with their next claim.
LOCK TABLE campaigns IN SHARE ROW EXCLUSIVE MODE;
ALTER TABLE campaigns DISABLE TRIGGER campaigns_keep_retry_limit;  -- it refuses a lower limit of a started campaign
WITH changed AS (UPDATE campaigns SET retry_limit = 1000 WHERE retry_limit > 1000 RETURNING 1)
INSERT INTO pg_temp.adopted SELECT count(*), 'campaigns with a retry limit above 1,000', 'it is 1,000' FROM changed;
ALTER TABLE campaigns ENABLE TRIGGER campaigns_keep_retry_limit,
    DROP CONSTRAINT campaigns_retry_limit_range,
    ADD CONSTRAINT campaigns_retry_limit_range CHECK (retry_limit BETWEEN 0 AND 1000);
