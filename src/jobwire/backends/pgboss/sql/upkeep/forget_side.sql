-- Part of statements that delete jobs (`gone`): deletes the side data of those jobs.
), forgotten AS ( --? side
    DELETE FROM {side}.progress p USING gone g WHERE p.name = :queue AND p.id = g.id --? side
), unlogged AS ( --? side
    DELETE FROM {side}.log l USING gone g WHERE l.name = :queue AND l.id = g.id --? side
), forgiven AS ( --? side
    DELETE FROM {side}.stall t USING gone g WHERE t.name = :queue AND t.id = g.id --? side
