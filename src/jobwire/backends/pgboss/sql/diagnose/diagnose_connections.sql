-- Returns the connections in use, and the number that accounts without special rights may have.
SELECT (SELECT count(*) FROM pg_catalog.pg_stat_activity a WHERE a.backend_type = 'client backend'),
    current_setting('max_connections')::integer - current_setting('superuser_reserved_connections')::integer,
    (SELECT r.rolconnlimit FROM pg_catalog.pg_roles r WHERE r.rolname = current_user),
    (SELECT count(*) FROM pg_catalog.pg_stat_activity a WHERE a.usename = current_user),
    (SELECT d.datconnlimit FROM pg_catalog.pg_database d WHERE d.datname = current_database()),
    (SELECT count(*) FROM pg_catalog.pg_stat_activity a WHERE a.datname = current_database())
