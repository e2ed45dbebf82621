-- Keep a warning where Node keeps its own.
INSERT INTO {schema}.warning (type, message, data) VALUES (:type, :message, :data::jsonb)
