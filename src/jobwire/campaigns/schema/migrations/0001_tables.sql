-- The tables with their columns, and no rules yet: those of 0002 are the same for a new database and an adopted one.
-- Runs with a search path of the chosen schema alone. In tables that exist, camelCase columns are renamed, missing
-- columns are added, and other types are converted (a time without a zone is taken for UTC). No row is touched.

CREATE TABLE IF NOT EXISTS users (id text PRIMARY KEY, username text, created_at timestamptz DEFAULT now());
CREATE TABLE IF NOT EXISTS batches (id text PRIMARY KEY, name text, created_at timestamptz DEFAULT now());
CREATE TABLE IF NOT EXISTS templates (id text PRIMARY KEY, name text, content text, created_at timestamptz DEFAULT now());
CREATE TABLE IF NOT EXISTS channels (id text PRIMARY KEY, username text, category text);
CREATE TABLE IF NOT EXISTS batch_channels (batch_id text NOT NULL, channel_id text NOT NULL);
CREATE TABLE IF NOT EXISTS campaigns (id text PRIMARY KEY, name text, description text, batch_id text, template_id text);
CREATE TABLE IF NOT EXISTS jobs (id text PRIMARY KEY, campaign_id text NOT NULL, channel_id text NOT NULL, status text);

ALTER TABLE jobs DROP COLUMN IF EXISTS "bullJobId";

DO $$
DECLARE
    wanted record;
    camel text;
    found text;
BEGIN
    FOR wanted IN
        SELECT * FROM (VALUES
            ('users', 'username', 'text'),
            ('users', 'created_at', 'timestamp with time zone'),
            ('batches', 'name', 'text'),
            ('batches', 'created_at', 'timestamp with time zone'),
            ('templates', 'name', 'text'),
            ('templates', 'content', 'text'),
            ('templates', 'media_type', 'text'),
            ('templates', 'media_url', 'text'),
            ('templates', 'created_at', 'timestamp with time zone'),
            ('channels', 'username', 'text'),
            ('channels', 'category', 'text'),
            ('channels', 'is_active', 'boolean'),
            ('channels', 'error_count', 'integer'),
            ('channels', 'last_error', 'text'),
            ('channels', 'created_at', 'timestamp with time zone'),
            ('channels', 'updated_at', 'timestamp with time zone'),
            ('batch_channels', 'batch_id', 'text'),
            ('batch_channels', 'channel_id', 'text'),
            ('campaigns', 'name', 'text'),
            ('campaigns', 'description', 'text'),
            ('campaigns', 'batch_id', 'text'),
            ('campaigns', 'template_id', 'text'),
            ('campaigns', 'params', 'jsonb'),
            ('campaigns', 'mode', 'text'),
            ('campaigns', 'delivery_rate', 'integer'),
            ('campaigns', 'retry_limit', 'integer'),
            ('campaigns', 'status', 'text'),
            ('campaigns', 'progress', 'integer'),
            ('campaigns', 'total_jobs', 'integer'),
            ('campaigns', 'created_at', 'timestamp with time zone'),
            ('campaigns', 'updated_at', 'timestamp with time zone'),
            ('campaigns', 'started_at', 'timestamp with time zone'),
            ('campaigns', 'completed_at', 'timestamp with time zone'),
            ('campaigns', 'created_by_id', 'text'),
            ('campaigns', 'paused_until', 'timestamp with time zone'),
            ('campaigns', 'paused_reason', 'text'),
            ('campaigns', 'error', 'text'),
            ('jobs', 'campaign_id', 'text'),
            ('jobs', 'channel_id', 'text'),
            ('jobs', 'status', 'text'),
            ('jobs', 'attempts', 'integer'),
            ('jobs', 'error_message', 'text'),
            ('jobs', 'created_at', 'timestamp with time zone'),
            ('jobs', 'started_at', 'timestamp with time zone'),
            ('jobs', 'sent_at', 'timestamp with time zone'),
            ('jobs', 'failed_at', 'timestamp with time zone'),
            ('jobs', 'idempotency_key', 'text'),
            ('jobs', 'due_at', 'timestamp with time zone'),
            ('jobs', 'duplicate_of', 'text')
        ) AS listed (table_name, column_name, type_name)
    LOOP
        camel := replace(initcap(replace(wanted.column_name, '_', ' ')), ' ', '');
        camel := lower(left(camel, 1)) || substr(camel, 2);
        SELECT format_type(a.atttypid, NULL) INTO found FROM pg_attribute a
        WHERE a.attrelid = wanted.table_name::regclass AND a.attname = wanted.column_name AND NOT a.attisdropped;
        IF found IS NULL AND camel <> wanted.column_name THEN
            SELECT format_type(a.atttypid, NULL) INTO found FROM pg_attribute a
            WHERE a.attrelid = wanted.table_name::regclass AND a.attname = camel AND NOT a.attisdropped;
            IF found IS NOT NULL THEN
                EXECUTE format('ALTER TABLE %I RENAME COLUMN %I TO %I', wanted.table_name, camel, wanted.column_name);
            END IF;
        END IF;
        IF found IS NULL THEN
            EXECUTE format('ALTER TABLE %I ADD COLUMN %I %s',
                wanted.table_name, wanted.column_name, wanted.type_name);
        ELSIF found <> wanted.type_name THEN
            EXECUTE format('ALTER TABLE %I ALTER COLUMN %I DROP DEFAULT', wanted.table_name, wanted.column_name);
            EXECUTE format('ALTER TABLE %I ALTER COLUMN %I TYPE %s USING %s',
                wanted.table_name, wanted.column_name, wanted.type_name,
                CASE WHEN found = 'timestamp without time zone'
                    THEN format('%I AT TIME ZONE ''UTC''', wanted.column_name)
                    ELSE format('%I::text::%s', wanted.column_name, wanted.type_name) END);
        END IF;
    END LOOP;
END $$;
