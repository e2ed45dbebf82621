-- Makes delayed jobs ready now.
-- KEYS[1] base of the queue; ARGV ids. Returns one answer per id: 1 done, 0 no such job, -1 not delayed.
--@include enqueue
--@include read_job
--@include events

local base = KEYS[1]

local function promote(id)
  local key = base .. id
  if not is_job(base, id) then return 0 end
  if redis.call('ZREM', base .. 'delayed', id) == 0 then return -1 end
  local priority = tonumber(redis.call('HGET', key, 'priority')) or 0
  if priority == 0 then
    push_to_list(base, id, false)
  else
    push_prioritized(base, id, priority)
  end
  add_event(base, 'waiting', 'jobId', id, 'prev', 'delayed')
  redis.call('HSET', key, 'delay', 0)
  return 1
end

local answers = {}
for i, id in ipairs(ARGV) do answers[i] = promote(id) end
return answers
