-- Makes the next job of each scheduler whose current job a worker has claimed.
-- KEYS[1] base of the queue; ARGV[1] now in ms, then per job five: scheduler id, id of the claimed job, interval in ms
-- from its options ('' if none), next time by its cron rule ('' if none), options for the next job as a JSON object.
-- Returns per job the id of the next one, '' if there is nothing to do, or an error text after '!'.
-- Only the scheduler's current job makes a next one, so running this again for the same job changes nothing. A
-- scheduler whose keys are broken does not stop the others.
-- Repeat jobs made by Queue.add of BullMQ 5 have a record without data: it is taken from the claimed job and stored.
-- Those of BullMQ 4 have no record at all, a key of five parts, and ids made of a checksum instead of the key.
--@include schedule

local base, now = KEYS[1], tonumber(ARGV[1])

local function next_of(record, previous, every_asked, by_rule)
  local stored = redis.call('HMGET', record, 'every', 'offset')
  local every = tonumber(stored[1]) or tonumber(every_asked)
  if every and every > 0 then return next_moment(previous, every, tonumber(stored[2]), now) end
  return tonumber(by_rule)
end

local function advance(scheduler, current, every_asked, by_rule, opts)
  local previous = tonumber(redis.call('ZSCORE', base .. 'repeat', scheduler))
  if not previous then return '' end
  local record, stem = base .. 'repeat:' .. scheduler, 'repeat:' .. scheduler
  local old_form = is_version_4(scheduler)
  if old_form then stem = string.match(current, '^(.*):%d+$') end
  if current ~= (stem or '') .. ':' .. whole_number(previous) then return '' end

  local next_at = old_form and tonumber(by_rule) or next_of(record, previous, every_asked, by_rule)
  if not next_at then return '' end
  local job_id = stem .. ':' .. whole_number(next_at)
  if redis.call('EXISTS', base .. job_id) == 1 then
    add_event_and_trim(base, 'duplicated', 'jobId', job_id)
    return job_id
  end

  local own = redis.call('HMGET', base .. current, 'name', 'data')
  local name, data = own[1] or scheduler, own[2] or '{}'
  redis.call('ZADD', base .. 'repeat', next_at, scheduler)
  if not old_form then
    local stored = redis.call('HMGET', record, 'name', 'data')
    name = stored[1] or name
    redis.call('HINCRBY', record, 'ic', 1)
    if stored[2] then
      data = stored[2]
    elseif data ~= '{}' then
      redis.call('HSET', record, 'data', data)
    end
    redis.call('HSET', base .. current, 'nrjid', job_id)
  end
  make_job(base, scheduler, job_id, name, data, opts, next_at, now)
  return job_id
end

local answers = {}
for i = 2, #ARGV, 5 do
  local ok, answer = pcall(advance, ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3], ARGV[i + 4])
  if not ok then answer = '!' .. tostring(type(answer) == 'table' and answer.err or answer) end
  answers[#answers + 1] = answer
end
return answers
