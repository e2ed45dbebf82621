-- The rules that need two tables. They are triggers and not statements of the store, so that they hold for every
-- program that writes these tables, such as a Node.js worker that marks a job as SENT.
LOCK TABLE campaigns, jobs IN SHARE ROW EXCLUSIVE MODE;

-- Counters: what a campaign's progress is made of, without counting its jobs ----------------------------------------
ALTER TABLE campaigns
    ADD COLUMN sent integer NOT NULL DEFAULT 0 CONSTRAINT campaigns_sent_range CHECK (sent >= 0),
    ADD COLUMN failed integer NOT NULL DEFAULT 0 CONSTRAINT campaigns_failed_range CHECK (failed >= 0),
    SET (fillfactor = 50);  -- every settled job updates its campaign: room for the next version on the same page

-- Rows that a COMPLETED campaign does not have any more were sent: only those are ever purged.
WITH counted AS (
    SELECT campaign_id, count(*)::integer AS jobs,
        (count(*) FILTER (WHERE status = 'SENT'))::integer AS sent,
        (count(*) FILTER (WHERE status = 'FAILED'))::integer AS failed
    FROM jobs GROUP BY campaign_id),
right_numbers AS (
    SELECT c.id, coalesce(n.failed, 0) AS failed,
        CASE WHEN c.status = 'COMPLETED' THEN greatest(c.total_jobs, coalesce(n.jobs, 0)) ELSE coalesce(n.jobs, 0) END
            AS total_jobs,
        coalesce(n.sent, 0) + CASE WHEN c.status = 'COMPLETED'
            THEN greatest(c.total_jobs - coalesce(n.jobs, 0), 0) ELSE 0 END AS sent
    FROM campaigns c LEFT JOIN counted n ON n.campaign_id = c.id),
changed AS (
    UPDATE campaigns c SET sent = r.sent, failed = r.failed, total_jobs = r.total_jobs
    FROM right_numbers r WHERE r.id = c.id AND (r.sent, r.failed, r.total_jobs) <> (c.sent, c.failed, c.total_jobs)
    RETURNING (SELECT old.total_jobs FROM campaigns old WHERE old.id = c.id) <> c.total_jobs AS corrected)
INSERT INTO pg_temp.adopted
SELECT count(*) FILTER (WHERE corrected), 'campaigns with a wrong number of jobs', 'it is the number of their jobs'
FROM changed;
WITH changed AS (
    UPDATE campaigns SET status = 'COMPLETED', completed_at = coalesce(completed_at, now())
    WHERE status IN ('RUNNING', 'PAUSED') AND total_jobs > 0 AND sent + failed >= total_jobs RETURNING 1)
INSERT INTO pg_temp.adopted
SELECT count(*), 'open campaigns whose jobs had all finished', 'they are completed' FROM changed;
WITH changed AS (
    UPDATE campaigns SET progress = right_progress.value
    FROM (SELECT id, CASE WHEN total_jobs > 0 THEN (sent + failed)::bigint * 100 / total_jobs
                          WHEN status = 'COMPLETED' THEN 100 ELSE 0 END::integer AS value FROM campaigns) right_progress
    WHERE right_progress.id = campaigns.id AND progress <> value RETURNING 1)
INSERT INTO pg_temp.adopted
SELECT count(*), 'campaigns with progress other than that of their jobs', 'it is that of their jobs' FROM changed;

-- Changes the counters when jobs become SENT or FAILED: once per statement and campaign, however many jobs it settles,
-- and campaigns in the order of their ids, so that two statements never wait for each other. A campaign is COMPLETED
-- with its last job, also while it is paused, since a pause has nothing left to hold back. Without jobs of ours
-- (total_jobs = 0) nothing is concluded.
CREATE FUNCTION campaigns_count_settled() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    IF NOT EXISTS (SELECT 1 FROM after_update a WHERE a.status IN ('SENT', 'FAILED'))
        AND NOT EXISTS (SELECT 1 FROM before_update b WHERE b.status IN ('SENT', 'FAILED')) THEN
        RETURN NULL;
    END IF;
    WITH moved AS MATERIALIZED (
        SELECT a.campaign_id AS id,
            sum((a.status = 'SENT')::integer - (b.status = 'SENT')::integer)::integer AS more_sent,
            sum((a.status = 'FAILED')::integer - (b.status = 'FAILED')::integer)::integer AS more_failed
        FROM after_update a JOIN before_update b ON b.id = a.id
        WHERE a.status <> b.status GROUP BY a.campaign_id),
    locked AS MATERIALIZED (
        SELECT c.id FROM campaigns c WHERE c.id = ANY(ARRAY(SELECT id FROM moved)) ORDER BY c.id FOR NO KEY UPDATE)
    UPDATE campaigns c SET
        sent = c.sent + m.more_sent,
        failed = c.failed + m.more_failed,
        progress = CASE WHEN c.total_jobs > 0
            THEN least(100, (c.sent + c.failed + m.more_sent + m.more_failed)::bigint * 100 / c.total_jobs)
            ELSE c.progress END,
        updated_at = now()
    FROM moved m WHERE m.id = c.id AND c.id = ANY(ARRAY(SELECT id FROM locked));
    UPDATE campaigns c SET status = 'COMPLETED', completed_at = now(), paused_until = NULL, paused_reason = NULL
    WHERE c.id = ANY(ARRAY(SELECT DISTINCT a.campaign_id FROM after_update a WHERE a.status IN ('SENT', 'FAILED')))
        AND c.status IN ('RUNNING', 'PAUSED') AND c.total_jobs > 0 AND c.sent + c.failed >= c.total_jobs;
    RETURN NULL;
END $$;
CREATE TRIGGER campaigns_count_settled AFTER UPDATE ON jobs
    REFERENCING OLD TABLE AS before_update NEW TABLE AS after_update
    FOR EACH STATEMENT EXECUTE FUNCTION campaigns_count_settled();

-- Attempts: runs made, at most retry_limit + 1. Fires when a job is claimed, not when jobs are created.
CREATE FUNCTION campaigns_check_attempts() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    most integer := (SELECT c.retry_limit + 1 FROM campaigns c WHERE c.id = NEW.campaign_id);
BEGIN
    IF NEW.attempts > most THEN
        RAISE EXCEPTION 'job % has % attempts; its campaign allows %', NEW.id, NEW.attempts, most
            USING ERRCODE = 'check_violation', CONSTRAINT = 'jobs_attempts_allowed', TABLE = 'jobs';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER campaigns_check_attempts BEFORE INSERT ON jobs FOR EACH ROW
    WHEN (NEW.attempts > 0) EXECUTE FUNCTION campaigns_check_attempts();
CREATE TRIGGER campaigns_check_more_attempts BEFORE UPDATE OF attempts ON jobs FOR EACH ROW
    WHEN (NEW.attempts > OLD.attempts) EXECUTE FUNCTION campaigns_check_attempts();

-- A lower limit could be exceeded already: it is refused once the campaign has started.
CREATE FUNCTION campaigns_keep_retry_limit() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    RAISE EXCEPTION 'the retry limit of campaign % can''t be lowered after its start', NEW.id
        USING ERRCODE = 'check_violation', CONSTRAINT = 'campaigns_retry_limit_kept', TABLE = 'campaigns';
END $$;
CREATE TRIGGER campaigns_keep_retry_limit BEFORE UPDATE OF retry_limit ON campaigns FOR EACH ROW
    WHEN (NEW.retry_limit < OLD.retry_limit AND OLD.status <> 'QUEUED') EXECUTE FUNCTION campaigns_keep_retry_limit();
