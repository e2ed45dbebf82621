-- Gives old failed jobs with an empty message one, and checks all rows without keeping others from writing.
WITH changed AS (
    UPDATE jobs SET error_message = 'unknown (adopted)' WHERE error_message = '' AND status = 'FAILED' RETURNING 1)
INSERT INTO pg_temp.adopted
SELECT count(*), 'jobs that had failed with an empty message', 'their message is ''unknown (adopted)''' FROM changed;
ALTER TABLE jobs VALIDATE CONSTRAINT jobs_failed_with_message;
