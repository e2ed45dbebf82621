-- Keep jobwire's workers from claiming jobs of a queue.
INSERT INTO {side}.held (name) VALUES (:queue) ON CONFLICT DO NOTHING
