-- Returns the age of the oldest transaction number in this database.
SELECT age(d.datfrozenxid)::bigint FROM pg_catalog.pg_database d WHERE d.datname = current_database()
