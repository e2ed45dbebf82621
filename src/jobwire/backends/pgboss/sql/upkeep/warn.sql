-- Stores a warning where Node stores its own.
INSERT INTO {schema}.warning (type, message, data) VALUES (:type, :message, :data::jsonb)
