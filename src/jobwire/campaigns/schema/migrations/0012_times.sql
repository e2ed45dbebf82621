-- Another application may set the times of its rows itself, in columns that must have a value. Rows of ours don't name
-- those columns, so they get a default.
DO $$
DECLARE
    wanted record;
BEGIN
    FOR wanted IN
        SELECT a.attrelid::regclass AS table_name, a.attname, a.atttypid = 'timestamp'::regtype AS without_zone
        FROM pg_attribute a
        WHERE a.attrelid = ANY('{users,batches,templates,channels,batch_channels,campaigns,jobs}'::regclass[])
            AND a.attname IN ('created_at', 'createdAt', 'updated_at', 'updatedAt') AND a.attnotnull
            AND NOT a.atthasdef AND NOT a.attisdropped AND a.atttypid IN ('timestamp'::regtype, 'timestamptz'::regtype)
    LOOP
        EXECUTE format('ALTER TABLE %s ALTER COLUMN %I SET DEFAULT %s', wanted.table_name, wanted.attname,
            CASE WHEN wanted.without_zone THEN '(now() AT TIME ZONE ''UTC'')' ELSE 'now()' END);
    END LOOP;
END $$;
