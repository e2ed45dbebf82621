-- Deletes every job of a queue, its schedules and its side data. The queue and its settings stay. Returns the number of active jobs, and
-- deletes nothing if there are any, unless forced.
WITH busy AS MATERIALIZED (
    SELECT count(*) AS jobs FROM {job} j WHERE j.name = :queue AND j.state = 'active'
), allowed AS MATERIALIZED (
    SELECT 1 FROM busy WHERE :force::boolean OR jobs = 0
), gone AS (
    DELETE FROM {job} j WHERE j.name = :queue AND EXISTS (SELECT FROM allowed)
), unscheduled AS (
    DELETE FROM {schema}.schedule s WHERE s.name = :queue AND EXISTS (SELECT FROM allowed)
), released AS ( --? side
    DELETE FROM {side}.held h WHERE h.name = :queue AND EXISTS (SELECT FROM allowed) --? side
), forgotten AS ( --? side
    DELETE FROM {side}.progress p WHERE p.name = :queue AND EXISTS (SELECT FROM allowed) --? side
), unlogged AS ( --? side
    DELETE FROM {side}.log l WHERE l.name = :queue AND EXISTS (SELECT FROM allowed) --? side
), forgiven AS ( --? side
    DELETE FROM {side}.stall t WHERE t.name = :queue AND EXISTS (SELECT FROM allowed) --? side
), windows AS ( --? side
    DELETE FROM {side}.pace c WHERE c.name = :queue AND EXISTS (SELECT FROM allowed) --? side
)
SELECT jobs FROM busy
