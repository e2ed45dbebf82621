-- Makes finished jobs ready again. Their counters (attempts, stalls) and their stack traces stay.
-- KEYS[1] base of the queue; ARGV[1] '1' to reset the attempts made, as BullMQ can since 5.66; ARGV[2..] ids.
-- Returns one answer per id: 1 done, 0 no such job, -1 not finished.
-- Priority is ignored, as in BullMQ 5.62: an operator asked for this job by its id. The parent of a child waits for it
-- again.
--@include family
--@include enqueue
--@include events

local base = KEYS[1]

local function back_to_parent(id, from)
  local _, _, parent_key = parent_of(base, id)
  if not parent_key then return end
  local child, moved = base .. id, 0
  if from == 'completed' then
    moved = redis.call('HDEL', parent_key .. ':processed', child)
  else
    moved = redis.call('ZREM', parent_key .. ':unsuccessful', child) + redis.call('HDEL', parent_key .. ':failed', child)
  end
  if moved > 0 then redis.call('SADD', parent_key .. ':dependencies', child) end
end

local function retry(id)
  local key = base .. id
  if not is_job(base, id) then return 0 end
  local from
  if redis.call('ZREM', base .. 'failed', id) == 1 then
    from = 'failed'
  elseif redis.call('ZREM', base .. 'completed', id) == 1 then
    from = 'completed'
  else
    return -1
  end
  redis.call('HDEL', key, 'finishedOn', 'processedOn', from == 'failed' and 'failedReason' or 'returnvalue')
  if ARGV[1] == '1' then redis.call('HDEL', key, 'atm', 'ats') end
  push_to_list(base, id, object_of(redis.call('HGET', key, 'opts')).lifo == true)
  back_to_parent(id, from)
  add_event_and_trim(base, 'waiting', 'jobId', id, 'prev', from)
  return 1
end

local answers = {}
for i = 2, #ARGV do answers[i - 1] = retry(ARGV[i]) end
return answers
