-- A scheduler always has one job ahead. It is made when the scheduler is stored, then each time a worker claims the one
-- before. The scheduler's score in `repeat` is the time of that job, whose id is `repeat:<scheduler>:<time>`.
--@include remove

-- Returns a number as text without exponent. `..` would keep only 14 digits.
local function whole_number(value)
  return string.format('%.0f', value)
end

local function scheduled_id(scheduler, at)
  return 'repeat:' .. scheduler .. ':' .. whole_number(at)
end

-- Returns true for a repeat job that BullMQ 4 added: its key has five parts, it has no record, and the ids of its jobs
-- contain a checksum of the key.
local function is_version_4(scheduler)
  return select(2, string.gsub(scheduler, ':', ':')) >= 4
end

-- Returns the time after the previous one. After a gap in which no worker ran, that is the next full interval, shifted
-- by the scheduler's offset (BullMQ 5.62 adds a whole interval before the offset, so one run may be left out).
local function next_moment(previous, every, offset, now)
  local at = previous + every
  if at < now then at = math.floor(now / every) * every + every + (offset or 0) end
  return at
end

-- Returns the container of a ready or delayed job, nil for any other.
local function waiting_container(base, id)
  if redis.call('ZSCORE', base .. 'delayed', id) then return 'delayed' end
  if redis.call('ZSCORE', base .. 'prioritized', id) then return 'prioritized' end
  if redis.call('EXISTS', base .. id) == 0 then return nil end
  if redis.call('LPOS', base .. 'wait', id) then return 'wait' end
  if redis.call('LPOS', base .. 'paused', id) then return 'paused' end
  return nil
end

local function delete_waiting_job(base, id, container)
  if container == 'wait' or container == 'paused' then
    redis.call('LREM', base .. container, 1, id)
  else
    redis.call('ZREM', base .. container, id)
  end
  delete_job(base, id)
end

-- Stores the job that is due at `at`. `opts` is a JSON object with at least one field. Id and delay are added to its
-- text, so that none of its numbers pass through Lua.
local function make_job(base, scheduler, id, name, data, opts, at, now)
  local delay = math.max(0, at - now)
  local asked = object_of(opts)
  local priority = tonumber(asked.priority) or 0
  local stored_opts = string.sub(opts, 1, -2) .. ',"jobId":' .. cjson.encode(id) .. ',"delay":' .. whole_number(delay) .. '}'
  redis.call('INCR', base .. 'id')
  redis.call('HSET', base .. id, 'name', name, 'data', data, 'opts', stored_opts, 'timestamp', whole_number(now),
    'delay', whole_number(delay), 'priority', priority, 'rjk', scheduler)
  add_event(base, 'added', 'jobId', id, 'name', name)
  if delay > 0 then
    push_delayed(base, id, at)
    add_event_and_trim(base, 'delayed', 'jobId', id, 'delay', whole_number(at))
    return
  end
  if priority == 0 then
    push_to_list(base, id, asked.lifo == true)
  else
    push_prioritized(base, id, priority)
  end
  add_event_and_trim(base, 'waiting', 'jobId', id)
end
