-- Pauses a queue for jobwire's workers.
INSERT INTO {side}.held (name) VALUES (:queue) ON CONFLICT DO NOTHING
