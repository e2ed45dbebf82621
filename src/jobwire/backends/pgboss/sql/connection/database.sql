-- The name of the database, part of every advisory lock's key.
SELECT current_database()::text
