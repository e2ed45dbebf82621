-- Returns changes of the schema that pg-boss could not make.
SELECT b.name, b.table_name, coalesce(b.error, '') FROM {schema}.bam b WHERE b.status = 'failed' ORDER BY b.created_on LIMIT 10
