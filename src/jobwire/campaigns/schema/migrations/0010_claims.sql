-- claimed_until: the time up to which the worker that claims the job may be sending it. Workers may have different time
-- limits, and one with a short limit must not sweep the claims of the others. No index has it, see 0006.
-- A failed job has a message that is not empty. It holds for new rows from here on, so that the table is not read under
-- a lock. 0011 looks at the others.
ALTER TABLE jobs
    ADD COLUMN claimed_until timestamptz,
    DROP CONSTRAINT jobs_failed_with_message,
    ADD CONSTRAINT jobs_failed_with_message
        CHECK (status <> 'FAILED' OR coalesce(error_message, '') <> '') NOT VALID;
