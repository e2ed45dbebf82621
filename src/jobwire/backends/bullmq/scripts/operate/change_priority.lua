-- Changes a job's priority, and its position if it is waiting. Writes no event.
-- KEYS[1] base of the queue; ARGV[1] id, ARGV[2] priority, ARGV[3] '1' to run before others of that priority.
-- Returns 1 done, 0 no such job.
--@include enqueue
--@include read_job

local base, id, priority, front = KEYS[1], ARGV[1], tonumber(ARGV[2]), ARGV[3] == '1'

local function was_waiting()
  if redis.call('ZREM', base .. 'prioritized', id) == 1 then return true end
  return redis.call('LREM', base .. 'wait', -1, id) == 1 or redis.call('LREM', base .. 'paused', -1, id) == 1
end

if not is_job(base, id) then return 0 end
if was_waiting() then
  if priority == 0 then
    push_to_list(base, id, front)
  elseif front then
    insert_prioritized_first(base, id, priority)
  else
    push_prioritized(base, id, priority)
  end
end
redis.call('HSET', base .. id, 'priority', ARGV[2])
return 1
