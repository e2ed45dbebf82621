, p AS (DELETE FROM {side}.progress p USING gone g WHERE p.name = $1 AND p.id = g.id)
, l AS (DELETE FROM {side}.log l USING gone g WHERE l.name = $1 AND l.id = g.id)
, t AS (DELETE FROM {side}.stall t USING gone g WHERE t.name = $1 AND t.id = g.id)
