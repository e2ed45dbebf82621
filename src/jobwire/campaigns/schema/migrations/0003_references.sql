-- The references between the tables, under the names that PostgREST's users write (`campaigns_created_by_id_fkey`).
-- A reference that exists is kept, unless it is the one from jobs to campaigns and does not cascade. Rows that refer to
-- nothing are kept too: the reference then holds for every later write, and stays unchecked for these rows.
DO $$
DECLARE
    wanted record;
    existing record;
    orphans bigint;
BEGIN
    FOR wanted IN
        SELECT * FROM (VALUES
            ('campaigns', 'batch_id', 'batches', 'a', ''),
            ('campaigns', 'template_id', 'templates', 'a', ''),
            ('campaigns', 'created_by_id', 'users', 'a', ''),
            ('jobs', 'campaign_id', 'campaigns', 'c', 'ON DELETE CASCADE'),
            ('jobs', 'channel_id', 'channels', 'a', ''),
            ('batch_channels', 'batch_id', 'batches', 'c', 'ON DELETE CASCADE'),
            ('batch_channels', 'channel_id', 'channels', 'c', 'ON DELETE CASCADE')
        ) AS listed (table_name, column_name, parent, on_delete, clause)
    LOOP
        SELECT r.conname, r.confdeltype INTO existing FROM pg_constraint r
        JOIN pg_attribute a ON a.attrelid = r.conrelid AND r.conkey = ARRAY[a.attnum]
        WHERE r.contype = 'f' AND r.conrelid = wanted.table_name::regclass AND r.confrelid = wanted.parent::regclass
            AND a.attname = wanted.column_name
        LIMIT 1;
        IF FOUND THEN
            CONTINUE WHEN wanted.table_name <> 'jobs' OR wanted.on_delete <> 'c' OR existing.confdeltype = 'c';
            EXECUTE format('ALTER TABLE %I DROP CONSTRAINT %I', wanted.table_name, existing.conname);
        END IF;
        EXECUTE format('ALTER TABLE %I ADD CONSTRAINT %I FOREIGN KEY (%I) REFERENCES %I (id) %s NOT VALID',
            wanted.table_name, wanted.table_name || '_' || wanted.column_name || '_fkey',
            wanted.column_name, wanted.parent, wanted.clause);
        EXECUTE format('SELECT count(*) FROM %I t WHERE t.%I IS NOT NULL AND NOT EXISTS '
            '(SELECT 1 FROM %I p WHERE p.id = t.%I)',
            wanted.table_name, wanted.column_name, wanted.parent, wanted.column_name) INTO orphans;
        IF orphans = 0 THEN
            EXECUTE format('ALTER TABLE %I VALIDATE CONSTRAINT %I',
                wanted.table_name, wanted.table_name || '_' || wanted.column_name || '_fkey');
        ELSE
            INSERT INTO pg_temp.adopted VALUES (orphans,
                format('rows of %s whose %s refers to nothing', wanted.table_name, wanted.column_name),
                'they are kept as they are');
        END IF;
    END LOOP;
END $$;
