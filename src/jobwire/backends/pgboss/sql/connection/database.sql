-- Returns the name of the database, which is part of the key of every advisory lock.
SELECT current_database()::text
