-- The functions of schema 46. Node calls the first three; its later migrations call the others.
CREATE FUNCTION {schema}.job_now() RETURNS timestamptz LANGUAGE sql STABLE AS $body$
    SELECT pg_catalog.now()
$body$;

-- Rewrites a command for the table `job` and its indexes `job_iN` for one of the tables behind it.
CREATE FUNCTION {schema}.job_table_format(command text, table_name text) RETURNS text LANGUAGE sql IMMUTABLE AS $body$
    SELECT regexp_replace(
        regexp_replace(command, '\.job\y', '.' || quote_ident(table_name), 'g'),
        '\yjob_i(\d+)',
        table_name || '_i\1',
        'g'
    )
$body$;

CREATE FUNCTION {schema}.job_table_run(command text, tbl_name text DEFAULT NULL, queue_name text DEFAULT NULL)
RETURNS void LANGUAGE plpgsql AS $body$
DECLARE
    target text;
BEGIN
    FOR target IN
        SELECT t.name FROM (
            SELECT q.table_name AS name, 1 AS place FROM {schema}.queue q WHERE q.name = queue_name
            UNION ALL
            SELECT tbl_name, 1 WHERE queue_name IS NULL AND tbl_name IS NOT NULL
            UNION ALL
            SELECT 'job_common', 1 WHERE queue_name IS NULL AND tbl_name IS NULL
            UNION ALL
            SELECT q.table_name, 2 FROM {schema}.queue q
            WHERE q.partition AND queue_name IS NULL AND tbl_name IS NULL
        ) t ORDER BY t.place
    LOOP
        EXECUTE {schema}.job_table_format(command, target);
    END LOOP;
END
$body$;

-- Stores the commands as background migrations, to be run later.
CREATE FUNCTION {schema}.job_table_run_async(
    command_name text, version integer, command text, tbl_name text DEFAULT NULL, queue_name text DEFAULT NULL
) RETURNS void LANGUAGE plpgsql AS $body$
BEGIN
    INSERT INTO {schema}.bam (name, version, status, queue, table_name, command)
    SELECT command_name, job_table_run_async.version, 'pending', t.queue, t.name,
           {schema}.job_table_format(job_table_run_async.command, t.name)
    FROM (
        SELECT q.name AS queue, q.table_name AS name FROM {schema}.queue q WHERE q.name = queue_name
        UNION ALL
        SELECT NULL, tbl_name WHERE queue_name IS NULL AND tbl_name IS NOT NULL
        UNION ALL
        SELECT NULL, 'job_common' WHERE queue_name IS NULL AND tbl_name IS NULL
        UNION ALL
        SELECT q.name, q.table_name FROM {schema}.queue q
        WHERE q.partition AND queue_name IS NULL AND tbl_name IS NULL
    ) t;
END
$body$;

CREATE FUNCTION {schema}.create_queue(queue_name text, options jsonb) RETURNS void LANGUAGE plpgsql AS $body$
DECLARE
    own_table constant boolean := coalesce(options->>'partition', '') = 'true';
    chosen constant text := options->>'policy';
    target constant text :=
        CASE WHEN own_table THEN 'j' || encode(sha224(convert_to(queue_name, 'UTF8')), 'hex') ELSE 'job_common' END;
    step text;
BEGIN
    INSERT INTO {schema}.queue (
        name, policy, retry_limit, retry_delay, retry_backoff, retry_delay_max, expire_seconds, retention_seconds,
        deletion_seconds, warning_queued, dead_letter, partition, table_name, heartbeat_seconds, notify,
        created_on, updated_on
    ) VALUES (
        queue_name,
        chosen,
        coalesce((options->>'retryLimit')::integer, 2),
        coalesce((options->>'retryDelay')::integer, 0),
        coalesce((options->>'retryBackoff')::boolean, false),
        (options->>'retryDelayMax')::integer,
        coalesce((options->>'expireInSeconds')::integer, 900),
        coalesce((options->>'retentionSeconds')::integer, 1209600),
        coalesce((options->>'deleteAfterSeconds')::integer, 604800),
        coalesce((options->>'warningQueueSize')::integer, 0),
        options->>'deadLetter',
        coalesce((options->>'partition')::boolean, false),
        target,
        (options->>'heartbeatSeconds')::integer,
        coalesce((options->>'notify')::boolean, false),
        {schema}.job_now(),
        {schema}.job_now()
    ) ON CONFLICT DO NOTHING;
    IF NOT FOUND OR NOT own_table THEN
        RETURN;
    END IF;
    EXECUTE format('CREATE TABLE {schema}.%I (LIKE {schema}.job INCLUDING DEFAULTS)', target);
    FOREACH step IN ARRAY ARRAY[
{common_steps}
    ] LOOP
        EXECUTE {schema}.job_table_format(step, target);
    END LOOP;
    FOREACH step IN ARRAY CASE chosen
{policy_steps}
        ELSE ARRAY[]::text[]
    END LOOP
        EXECUTE {schema}.job_table_format(step, target);
    END LOOP;
    EXECUTE format('ALTER TABLE {schema}.%I ADD CONSTRAINT cjc CHECK (name = %L)', target, queue_name);
    EXECUTE format(
        'ALTER TABLE {schema}.job ATTACH PARTITION {schema}.%I FOR VALUES IN (%L)',
        target, queue_name
    );
END
$body$;

CREATE FUNCTION {schema}.delete_queue(queue_name text) RETURNS void LANGUAGE plpgsql AS $body$
DECLARE
    doomed {schema}.queue;
BEGIN
    SELECT * INTO doomed FROM {schema}.queue q WHERE q.name = queue_name;
    IF doomed.partition THEN
        EXECUTE format('DROP TABLE IF EXISTS {schema}.%I', doomed.table_name);
    ELSIF doomed.name IS NOT NULL THEN
        EXECUTE format('DELETE FROM {schema}.%I WHERE name = $1', doomed.table_name) USING queue_name;
    END IF;
    DELETE FROM {schema}.queue q WHERE q.name = queue_name;
END
$body$;
