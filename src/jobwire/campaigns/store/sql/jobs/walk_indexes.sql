-- Lets the statements of this transaction walk the jobs of a campaign in the order of an index. Without statistics, as
-- just after the jobs were created, the planner takes a bitmap for that, and reads and sorts them all.
SELECT set_config('enable_bitmapscan', 'off', true)
