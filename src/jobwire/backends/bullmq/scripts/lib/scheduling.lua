-- A scheduler keeps one job ahead: made when the scheduler is put, then each time a worker picks up the one before.
-- Its place in `repeat` is the moment of that job, whose id is `repeat:<scheduler>:<moment>`.
--@include removing

-- A number as text without exponent; `..` would keep only 14 digits.
local function whole_number(value)
  return string.format('%.0f', value)
end

local function scheduled_id(scheduler, at)
  return 'repeat:' .. scheduler .. ':' .. whole_number(at)
end

-- Repeat jobs that BullMQ 4 added: a key of five parts, no record, and a checksum of the key in the ids of the jobs.
local function is_version_4(scheduler)
  return select(2, string.gsub(scheduler, ':', ':')) >= 4
end

-- The moment after the previous one. After a gap in which no worker ran, the next full interval, shifted by the
-- scheduler's offset (BullMQ 5.62 adds a whole interval before the offset, so one moment may be left out).
local function next_moment(previous, every, offset, now)
  local at = previous + every
  if at < now then at = math.floor(now / every) * every + every + (offset or 0) end
  return at
end

-- Where a job waits for its turn or its time; nil if it does not.
local function waiting_place(base, id)
  if redis.call('ZSCORE', base .. 'delayed', id) then return 'delayed' end
  if redis.call('ZSCORE', base .. 'prioritized', id) then return 'prioritized' end
  if redis.call('EXISTS', base .. id) == 0 then return nil end
  if redis.call('LPOS', base .. 'wait', id) then return 'wait' end
  if redis.call('LPOS', base .. 'paused', id) then return 'paused' end
  return nil
end

local function delete_waiting_job(base, id, place)
  if place == 'wait' or place == 'paused' then
    redis.call('LREM', base .. place, 1, id)
  else
    redis.call('ZREM', base .. place, id)
  end
  delete_job(base, id)
end

-- Store the job of one moment. `opts` is a JSON object with at least one field; id and delay are added to its text, so
-- that nothing of it passes through Lua numbers.
local function make_job(base, scheduler, id, name, data, opts, at, now)
  local delay = math.max(0, at - now)
  local asked = object_of(opts)
  local priority = tonumber(asked.priority) or 0
  local stored_opts = string.sub(opts, 1, -2) .. ',"jobId":' .. cjson.encode(id) .. ',"delay":' .. whole_number(delay) .. '}'
  redis.call('INCR', base .. 'id')
  redis.call('HSET', base .. id, 'name', name, 'data', data, 'opts', stored_opts, 'timestamp', whole_number(now),
    'delay', whole_number(delay), 'priority', priority, 'rjk', scheduler)
  tell(base, 'added', 'jobId', id, 'name', name)
  if delay > 0 then
    push_delayed(base, id, at)
    tell_trimmed(base, 'delayed', 'jobId', id, 'delay', whole_number(at))
    return
  end
  if priority == 0 then
    push_to_list(base, id, asked.lifo == true)
  else
    push_prioritized(base, id, priority)
  end
  tell_trimmed(base, 'waiting', 'jobId', id)
end
