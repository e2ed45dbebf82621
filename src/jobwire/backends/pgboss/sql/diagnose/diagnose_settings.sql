-- Returns settings as this session has them, and where each was set.
SELECT s.name, s.setting, s.unit, s.source FROM pg_catalog.pg_settings s
WHERE s.name IN ('fsync', 'full_page_writes', 'synchronous_commit', 'autovacuum', 'statement_timeout', 'lock_timeout',
                 'transaction_timeout', 'default_transaction_read_only', 'track_counts')
