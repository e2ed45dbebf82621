-- Deletes a paused queue, a part per call.
-- KEYS[1] base of the queue; ARGV[1] 1 to delete running jobs too, ARGV[2] how many jobs per call.
-- Returns 1 call again, 0 done, -1 not paused, -2 jobs are running.
-- Deletes more than BullMQ 5.62, which leaves keys that no client reads any more: jobs in `wait` that a BullMQ 6 client
-- left there, parents that wait for children, the marker and the rate-limit counter.
--@include remove

local base, force, budget = KEYS[1], ARGV[1] == '1', tonumber(ARGV[2])
if redis.call('HEXISTS', base .. 'meta', 'paused') == 0 then return -1 end
if not force and redis.call('LLEN', base .. 'active') > 0 then return -2 end

for _, container in ipairs({ 'active', 'wait', 'paused' }) do
  local ids = redis.call('LRANGE', base .. container, 0, budget - 1)
  redis.call('LTRIM', base .. container, #ids, -1)
  for _, id in ipairs(ids) do
    delete_job(base, id)
    redis.call('DEL', base .. id .. ':lock')
  end
  budget = budget - #ids
  if budget <= 0 then return 1 end
end

for _, container in ipairs({ 'delayed', 'prioritized', 'completed', 'failed', 'waiting-children' }) do
  local ids = redis.call('ZRANGE', base .. container, 0, budget - 1)
  if #ids > 0 then redis.call('ZREM', base .. container, unpack(ids)) end
  for _, id in ipairs(ids) do delete_job(base, id) end
  budget = budget - #ids
  if budget <= 0 then return 1 end
end

local schedulers = redis.call('ZRANGE', base .. 'repeat', 0, budget - 1)
for _, id in ipairs(schedulers) do redis.call('DEL', base .. 'repeat:' .. id) end
if #schedulers > 0 then redis.call('ZREM', base .. 'repeat', unpack(schedulers)) end
if #schedulers == budget then return 1 end

local rest = { 'events', 'delay', 'priority', 'stalled-check', 'stalled', 'id', 'pc', 'marker', 'limiter', 'meta',
  'metrics:completed', 'metrics:completed:data', 'metrics:failed', 'metrics:failed:data' }
for _, name in ipairs(rest) do redis.call('DEL', base .. name) end
return 0
