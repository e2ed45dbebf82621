-- Creates or replaces a scheduler, and makes its first or next job.
-- KEYS[1] base of the queue; ARGV[1] now in ms, ARGV[2] scheduler id, ARGV[3] interval in ms ('' for a cron rule),
-- ARGV[4] the next time by the cron rule, or the first one by startDate ('' for none), ARGV[5] the rule as text,
-- ARGV[6] data of its jobs as JSON, ARGV[7] options of this job as a JSON object, ARGV[8..] fields of the record.
-- Returns the time of the job in ms and how many were made; -1 if jobs exist already at the times it could have.
-- A rule that is stored again unchanged keeps its next time, and the job that waits for it is replaced. A changed rule
-- starts over. BullMQ 5.62 would run the old time once more, later versions don't.
--@include schedule

local base, now, scheduler = KEYS[1], tonumber(ARGV[1]), ARGV[2]
local every, given, rule = tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5]
local data, opts = ARGV[6], ARGV[7]
local record = base .. 'repeat:' .. scheduler

local stored = redis.call('HMGET', record, 'every', 'pattern', 'tz', 'offset', 'ic')
local unchanged = (stored[1] or '') .. '|' .. (stored[2] or '') .. '|' .. (stored[3] or '') == rule
local previous = tonumber(redis.call('ZSCORE', base .. 'repeat', scheduler))
local current = previous and scheduled_id(scheduler, previous)
local container = current and waiting_container(base, current)

local next_at
if unchanged and container then
  next_at = previous
elseif not every then
  next_at = math.max(given, now)
elseif unchanged and previous then
  next_at = next_moment(previous, every, 0, now)
else
  next_at = math.max(given or now, now)
end

local function is_taken(at)
  local id = scheduled_id(scheduler, at)
  return redis.call('EXISTS', base .. id) == 1 and not (container and id == current)
end
if is_taken(next_at) then
  if not every or is_taken(next_at + every) then return -1 end
  next_at = next_at + every
end

local offset = unchanged and container and tonumber(stored[4]) or (every and next_at % every or 0)
if container then delete_waiting_job(base, current, container) end
redis.call('DEL', record)
redis.call('HSET', record, 'ic', stored[5] or 1, 'offset', whole_number(offset), unpack(ARGV, 8))
redis.call('ZADD', base .. 'repeat', next_at, scheduler)
local name = redis.call('HGET', record, 'name')
make_job(base, scheduler, scheduled_id(scheduler, next_at), name, data, opts, next_at, now)
return { whole_number(next_at), tonumber(stored[5]) or 1 }
