-- The rules of the tables as constraints. In an adopted database, values that break a rule are first brought to the
-- nearest legal value, and each kind is counted in the temporary table `adopted`, which the report is made from.
-- Both happen in one transaction under a lock, so that no other program can write a value in between.
LOCK TABLE users, batches, templates, channels, batch_channels, campaigns, jobs IN SHARE ROW EXCLUSIVE MODE;

-- Names --------------------------------------------------------------------------------------------------------------
WITH changed AS (UPDATE users SET username = id WHERE coalesce(username, '') = '' RETURNING 1)
INSERT INTO pg_temp.adopted SELECT count(*), 'users without a name', 'their id is their name' FROM changed;
WITH changed AS (UPDATE batches SET name = id WHERE coalesce(name, '') = '' RETURNING 1)
INSERT INTO pg_temp.adopted SELECT count(*), 'batches without a name', 'their id is their name' FROM changed;
WITH changed AS (UPDATE templates SET name = id WHERE coalesce(name, '') = '' RETURNING 1)
INSERT INTO pg_temp.adopted SELECT count(*), 'templates without a name', 'their id is their name' FROM changed;
WITH changed AS (UPDATE campaigns SET name = id WHERE coalesce(name, '') = '' RETURNING 1)
INSERT INTO pg_temp.adopted SELECT count(*), 'campaigns without a name', 'their id is their name' FROM changed;

-- Templates ----------------------------------------------------------------------------------------------------------
WITH changed AS (UPDATE templates SET content = '' WHERE content IS NULL RETURNING 1)
INSERT INTO pg_temp.adopted SELECT count(*), 'templates without content', 'their content is empty' FROM changed;
UPDATE templates SET media_url = NULL WHERE media_url = '';
UPDATE templates SET media_type = upper(media_type) WHERE upper(media_type) IN ('PHOTO', 'VIDEO', 'DOCUMENT')
    AND media_type <> upper(media_type);
WITH changed AS (
    UPDATE templates SET media_type = NULL WHERE media_type IS NOT NULL AND media_url IS NULL RETURNING 1)
INSERT INTO pg_temp.adopted SELECT count(*), 'templates with a media type and no URL', 'they have no media' FROM changed;
WITH changed AS (
    UPDATE templates SET media_type = 'DOCUMENT'
    WHERE media_url IS NOT NULL AND (media_type IN ('PHOTO', 'VIDEO', 'DOCUMENT')) IS NOT TRUE RETURNING 1)
INSERT INTO pg_temp.adopted
SELECT count(*), 'templates with a media URL and no known type', 'their type is DOCUMENT' FROM changed;

-- Channels -----------------------------------------------------------------------------------------------------------
WITH changed AS (UPDATE channels SET error_count = 0 WHERE error_count IS NULL OR error_count < 0 RETURNING 1)
INSERT INTO pg_temp.adopted SELECT count(*), 'channels with an error count missing or below 0', 'it is 0' FROM changed;
WITH changed AS (UPDATE channels SET is_active = false WHERE is_active IS NULL RETURNING 1)
INSERT INTO pg_temp.adopted SELECT count(*), 'channels neither active nor inactive', 'they are inactive' FROM changed;
WITH changed AS (UPDATE channels SET is_active = false WHERE is_active AND error_count >= 5 RETURNING 1)
INSERT INTO pg_temp.adopted SELECT count(*), 'channels active after five errors or more', 'they are inactive' FROM changed;
-- The application may keep usernames unique. One that another row has as @name then stays as it is written, and a
-- missing one can't be empty twice.
DO $$
DECLARE
    spelling text := '^\s*(?:(?:https?://)?(?:t|telegram)\.me/|@)?([a-z][a-z0-9_]{3,31})/?\s*$';
    changed bigint;
BEGIN
    BEGIN
        UPDATE channels SET username = '@' || (regexp_match(username, spelling, 'i'))[1]
        WHERE username !~ '^@[A-Za-z][A-Za-z0-9_]{3,31}$' AND username ~* spelling;
        GET DIAGNOSTICS changed = ROW_COUNT;
    EXCEPTION WHEN unique_violation THEN
        WITH other AS (
            SELECT id, '@' || (regexp_match(username, spelling, 'i'))[1] AS name, created_at FROM channels
            WHERE username !~ '^@[A-Za-z][A-Za-z0-9_]{3,31}$' AND username ~* spelling),
        ranked AS (
            SELECT id, name, row_number() OVER (PARTITION BY lower(name) ORDER BY created_at NULLS LAST, id) AS place
            FROM other)
        UPDATE channels c SET username = ranked.name FROM ranked
        WHERE ranked.id = c.id AND ranked.place = 1
            AND NOT EXISTS (SELECT 1 FROM channels taken WHERE lower(taken.username) = lower(ranked.name));
        GET DIAGNOSTICS changed = ROW_COUNT;
    END;
    INSERT INTO pg_temp.adopted
    VALUES (changed, 'channels with a username written in another way', 'it is written as @name');
END $$;
WITH changed AS (UPDATE channels SET username = format('(%s)', id) WHERE coalesce(username, '') = '' RETURNING 1)
INSERT INTO pg_temp.adopted SELECT count(*), 'channels without a username', 'it is their id in brackets' FROM changed;
WITH changed AS (
    UPDATE channels SET is_active = false, last_error = coalesce(last_error, 'not a username (adopted)')
    WHERE is_active AND username !~ '^@[A-Za-z][A-Za-z0-9_]{3,31}$' RETURNING 1)
INSERT INTO pg_temp.adopted SELECT count(*), 'active channels whose username is not one', 'they are inactive' FROM changed;
WITH ranked AS (
    SELECT id, row_number() OVER (PARTITION BY lower(username) ORDER BY created_at NULLS LAST, id) AS place
    FROM channels WHERE is_active),
changed AS (
    UPDATE channels c SET is_active = false, last_error = coalesce(last_error, 'listed twice (adopted)')
    FROM ranked WHERE ranked.id = c.id AND ranked.place > 1 RETURNING 1)
INSERT INTO pg_temp.adopted
SELECT count(*), 'active channels with the username of an older one', 'they are inactive' FROM changed;
WITH ranked AS (
    SELECT ctid, row_number() OVER (PARTITION BY batch_id, channel_id) AS place FROM batch_channels),
changed AS (DELETE FROM batch_channels b USING ranked WHERE b.ctid = ranked.ctid AND ranked.place > 1 RETURNING 1)
INSERT INTO pg_temp.adopted
SELECT count(*), 'repeated listings of a channel in a batch', 'one listing of each is kept' FROM changed;

-- Campaigns ----------------------------------------------------------------------------------------------------------
UPDATE campaigns SET status = upper(status)
WHERE upper(status) IN ('QUEUED', 'RUNNING', 'PAUSED', 'COMPLETED', 'FAILED', 'CANCELLED') AND status <> upper(status);
WITH changed AS (
    UPDATE campaigns SET status = 'FAILED', error = format('unknown status %s (adopted)', coalesce(status, 'NULL'))
    WHERE (status IN ('QUEUED', 'RUNNING', 'PAUSED', 'COMPLETED', 'FAILED', 'CANCELLED')) IS NOT TRUE RETURNING 1)
INSERT INTO pg_temp.adopted SELECT count(*), 'campaigns with an unknown status', 'they have failed' FROM changed;
UPDATE campaigns SET mode = upper(mode) WHERE upper(mode) IN ('TEST', 'LIVE') AND mode <> upper(mode);
WITH changed AS (UPDATE campaigns SET mode = 'TEST' WHERE (mode IN ('TEST', 'LIVE')) IS NOT TRUE RETURNING 1)
INSERT INTO pg_temp.adopted SELECT count(*), 'campaigns with an unknown mode', 'their mode is TEST' FROM changed;
WITH changed AS (
    UPDATE campaigns SET delivery_rate = CASE WHEN delivery_rate IS NULL THEN 20 ELSE 1 END
    WHERE delivery_rate IS NULL OR delivery_rate < 1 RETURNING 1)
INSERT INTO pg_temp.adopted
SELECT count(*), 'campaigns with a delivery rate missing or below 1', 'it is 20 or 1' FROM changed;
WITH changed AS (
    UPDATE campaigns SET retry_limit = CASE WHEN retry_limit IS NULL THEN 3 ELSE 0 END
    WHERE retry_limit IS NULL OR retry_limit < 0 RETURNING 1)
INSERT INTO pg_temp.adopted
SELECT count(*), 'campaigns with a retry limit missing or below 0', 'it is 3 or 0' FROM changed;
UPDATE campaigns SET params = '{}' WHERE params IS NULL;
WITH changed AS (UPDATE campaigns SET total_jobs = 0 WHERE total_jobs IS NULL OR total_jobs < 0 RETURNING 1)
INSERT INTO pg_temp.adopted
SELECT count(*), 'campaigns with a number of jobs missing or below 0', 'it is counted again' FROM changed;
WITH changed AS (
    UPDATE campaigns SET progress = greatest(0, least(100, coalesce(progress, 0)))
    WHERE progress IS NULL OR progress NOT BETWEEN 0 AND 100 RETURNING 1)
INSERT INTO pg_temp.adopted SELECT count(*), 'campaigns with progress missing or beyond 0 to 100', 'it is counted again' FROM changed;

-- Jobs ---------------------------------------------------------------------------------------------------------------
UPDATE jobs SET status = upper(status)
WHERE upper(status) IN ('QUEUED', 'SENDING', 'SENT', 'FAILED') AND status <> upper(status);
-- Never QUEUED: a message must not be sent because its state was not understood.
WITH changed AS (
    UPDATE jobs SET status = 'FAILED', error_message = format('unknown status %s (adopted)', coalesce(status, 'NULL'))
    WHERE (status IN ('QUEUED', 'SENDING', 'SENT', 'FAILED')) IS NOT TRUE RETURNING 1)
INSERT INTO pg_temp.adopted SELECT count(*), 'jobs with an unknown status', 'they have failed' FROM changed;
WITH changed AS (
    UPDATE jobs SET error_message = 'unknown (adopted)' WHERE status = 'FAILED' AND error_message IS NULL RETURNING 1)
INSERT INTO pg_temp.adopted
SELECT count(*), 'jobs that had failed without a message', 'their message is ''unknown (adopted)''' FROM changed;
WITH changed AS (
    UPDATE jobs SET sent_at = CASE WHEN status = 'SENT' THEN sent_at END,
        failed_at = CASE WHEN status = 'FAILED' THEN failed_at END
    WHERE sent_at IS NOT NULL AND failed_at IS NOT NULL RETURNING 1)
INSERT INTO pg_temp.adopted
SELECT count(*), 'jobs both sent and failed', 'they keep the time that belongs to their status' FROM changed;
WITH changed AS (UPDATE jobs SET attempts = 0 WHERE attempts IS NULL OR attempts < 0 RETURNING 1)
INSERT INTO pg_temp.adopted SELECT count(*), 'jobs with attempts missing or below 0', 'they have 0' FROM changed;
WITH changed AS (
    UPDATE jobs j SET attempts = c.retry_limit + 1 FROM campaigns c
    WHERE c.id = j.campaign_id AND j.attempts > c.retry_limit + 1 RETURNING 1)
INSERT INTO pg_temp.adopted
SELECT count(*), 'jobs with more attempts than their campaign allows', 'they have the most allowed' FROM changed;
WITH ranked AS (
    SELECT id, status, first_value(id) OVER best AS first, row_number() OVER best AS place FROM jobs
    WINDOW best AS (PARTITION BY campaign_id, channel_id
        ORDER BY array_position('{SENT,SENDING,QUEUED,FAILED}', status), created_at NULLS LAST, id)),
changed AS (
    UPDATE jobs j SET duplicate_of = ranked.first,
        error_message = CASE WHEN j.status IN ('QUEUED', 'SENDING')
            THEN format('duplicate of job %s (adopted)', ranked.first) ELSE j.error_message END,
        status = CASE WHEN j.status IN ('QUEUED', 'SENDING') THEN 'FAILED' ELSE j.status END
    FROM ranked WHERE ranked.id = j.id AND ranked.place > 1 RETURNING 1)
INSERT INTO pg_temp.adopted
SELECT count(*), 'second jobs of a campaign for the same channel',
    'they are kept, marked as duplicates, and never sent' FROM changed;

-- Constraints --------------------------------------------------------------------------------------------------------
ALTER TABLE users ALTER username SET NOT NULL, ALTER created_at SET DEFAULT now(),
    ADD CONSTRAINT users_username_given CHECK (username <> '');
ALTER TABLE batches ALTER name SET NOT NULL, ALTER created_at SET DEFAULT now(),
    ADD CONSTRAINT batches_name_given CHECK (name <> '');
ALTER TABLE templates ALTER name SET NOT NULL, ALTER content SET NOT NULL, ALTER created_at SET DEFAULT now(),
    ADD CONSTRAINT templates_name_given CHECK (name <> ''),
    ADD CONSTRAINT templates_media_type_known CHECK (media_type IN ('PHOTO', 'VIDEO', 'DOCUMENT')),
    ADD CONSTRAINT templates_media_whole CHECK ((media_type IS NULL) = (media_url IS NULL));
ALTER TABLE channels
    ALTER username SET NOT NULL,
    ALTER is_active SET DEFAULT true, ALTER is_active SET NOT NULL,
    ALTER error_count SET DEFAULT 0, ALTER error_count SET NOT NULL,
    ALTER created_at SET DEFAULT now(), ALTER updated_at SET DEFAULT now(),
    ADD CONSTRAINT channels_error_count_range CHECK (error_count >= 0),
    ADD CONSTRAINT channels_inactive_after_errors CHECK (error_count < 5 OR NOT is_active),
    -- An inactive channel may have any username, since adopted ones do.
    ADD CONSTRAINT channels_username_shape CHECK (username ~ '^@[A-Za-z][A-Za-z0-9_]{3,31}$' OR NOT is_active);
ALTER TABLE campaigns
    ALTER name SET NOT NULL,
    ALTER params SET DEFAULT '{}', ALTER params SET NOT NULL,
    ALTER mode SET DEFAULT 'TEST', ALTER mode SET NOT NULL,
    ALTER delivery_rate SET DEFAULT 20, ALTER delivery_rate SET NOT NULL,
    ALTER retry_limit SET DEFAULT 3, ALTER retry_limit SET NOT NULL,
    ALTER status SET DEFAULT 'QUEUED', ALTER status SET NOT NULL,
    ALTER progress SET DEFAULT 0, ALTER progress SET NOT NULL,
    ALTER total_jobs SET DEFAULT 0, ALTER total_jobs SET NOT NULL,
    ALTER created_at SET DEFAULT now(), ALTER updated_at SET DEFAULT now(),
    ADD CONSTRAINT campaigns_name_given CHECK (name <> ''),
    ADD CONSTRAINT campaigns_mode_known CHECK (mode IN ('TEST', 'LIVE')),
    ADD CONSTRAINT campaigns_status_known
        CHECK (status IN ('QUEUED', 'RUNNING', 'PAUSED', 'COMPLETED', 'FAILED', 'CANCELLED')),
    ADD CONSTRAINT campaigns_delivery_rate_range CHECK (delivery_rate >= 1),
    ADD CONSTRAINT campaigns_retry_limit_range CHECK (retry_limit >= 0),
    ADD CONSTRAINT campaigns_progress_range CHECK (progress BETWEEN 0 AND 100),
    ADD CONSTRAINT campaigns_total_jobs_range CHECK (total_jobs >= 0);
ALTER TABLE jobs
    ALTER status SET DEFAULT 'QUEUED', ALTER status SET NOT NULL,
    ALTER attempts SET DEFAULT 0, ALTER attempts SET NOT NULL,
    ALTER created_at SET DEFAULT now(),
    ADD CONSTRAINT jobs_status_known CHECK (status IN ('QUEUED', 'SENDING', 'SENT', 'FAILED')),
    ADD CONSTRAINT jobs_attempts_range CHECK (attempts >= 0),
    ADD CONSTRAINT jobs_failed_with_message CHECK (status <> 'FAILED' OR error_message IS NOT NULL),
    ADD CONSTRAINT jobs_sent_or_failed CHECK (sent_at IS NULL OR failed_at IS NULL),
    ADD CONSTRAINT jobs_duplicate_settled CHECK (duplicate_of IS NULL OR status IN ('SENT', 'FAILED'));

-- Indexes. The first five are those of the specification.
CREATE INDEX IF NOT EXISTS idx_jobs_campaign_status ON jobs (campaign_id, status);
CREATE INDEX IF NOT EXISTS idx_jobs_channel ON jobs (channel_id);
CREATE INDEX IF NOT EXISTS idx_jobs_status ON jobs (status);
CREATE INDEX IF NOT EXISTS idx_campaigns_status ON campaigns (status);
CREATE INDEX IF NOT EXISTS idx_channels_is_active ON channels (is_active);
CREATE UNIQUE INDEX jobs_campaign_channel ON jobs (campaign_id, channel_id) WHERE duplicate_of IS NULL;
-- Queued jobs that have no place in the queue yet, and those that have one (due_at). Written with IS TRUE, as in the
-- statements, so that without statistics the planner does not prefer idx_jobs_campaign_status and sort every queued job
-- for each window.
CREATE INDEX jobs_unfed ON jobs (campaign_id, id) WHERE (status = 'QUEUED' AND due_at IS NULL) IS TRUE;
CREATE INDEX jobs_fed ON jobs (campaign_id, due_at) WHERE (status = 'QUEUED' AND due_at IS NOT NULL) IS TRUE;
CREATE UNIQUE INDEX channels_active_username ON channels (lower(username)) WHERE is_active;
CREATE INDEX channels_username ON channels (lower(username));
CREATE UNIQUE INDEX batch_channels_once ON batch_channels (batch_id, channel_id);
CREATE INDEX batch_channels_channel ON batch_channels (channel_id);
