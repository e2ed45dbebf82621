-- Deletes jobs that have been in one container for long.
-- KEYS[1] base of the queue; ARGV[1] the container, ARGV[2] the latest time in ms, ARGV[3] how many jobs to check,
-- ARGV[4] how many to delete at most, ARGV[5] how many at the old end were kept by earlier calls.
-- Returns how many were kept so far, 1 if there may be more, and the ids of the deleted jobs.
-- A running job (one with a lock) and a scheduler's current job are kept.
--@include remove

local base, container, latest = KEYS[1], ARGV[1], tonumber(ARGV[2])
local look, most, kept = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local key = base .. container

-- The fields that show since when a job is in each container. The first one present counts.
local SINCE = {
  delayed = { 'processedOn', 'timestamp' },
  prioritized = { 'timestamp' },
  wait = { 'finishedOn', 'processedOn', 'timestamp' },
  paused = { 'finishedOn', 'processedOn', 'timestamp' },
  active = { 'finishedOn', 'processedOn', 'timestamp' },
}

local function is_due(id)
  if container == 'active' and redis.call('EXISTS', base .. id .. ':lock') == 1 then return false end
  if is_schedulers_current_job(base, id) then return false end
  for _, moment in ipairs(fields_of(base .. id, unpack(SINCE[container]))) do
    if moment then return (tonumber(moment) or 0) <= latest end
  end
  return true
end

local gone, more = {}, 0
if container == 'completed' or container == 'failed' then
  gone = redis.call('ZRANGE', key, '-inf', latest, 'BYSCORE', 'LIMIT', 0, math.min(look, most))
  more = #gone == look and 1 or 0
  for _, id in ipairs(gone) do delete_job(base, id) end
  if #gone > 0 then redis.call('ZREM', key, unpack(gone)) end
elseif container == 'delayed' or container == 'prioritized' then
  local ids = redis.call('ZRANGE', key, kept, kept + look - 1)
  more = #ids == look and 1 or 0
  for _, id in ipairs(ids) do
    if #gone == most then break end
    if is_due(id) then
      delete_job(base, id)
      gone[#gone + 1] = id
    else
      kept = kept + 1
    end
  end
  if #gone > 0 then redis.call('ZREM', key, unpack(gone)) end
else
  -- Entries are overwritten, then removed in one pass from the old end: removing each by value would walk the list once
  -- per job.
  local SWEPT = '\0swept'
  local ids = redis.call('LRANGE', key, -(kept + look), -(kept + 1))
  more = #ids == look and 1 or 0
  local position = -(kept + 1)
  for i = #ids, 1, -1 do
    if #gone == most then break end
    if is_due(ids[i]) then
      delete_job(base, ids[i])
      redis.call('LSET', key, position, SWEPT)
      gone[#gone + 1] = ids[i]
    else
      kept = kept + 1
    end
    position = position - 1
  end
  if #gone > 0 then redis.call('LREM', key, -#gone, SWEPT) end
end

add_event(base, 'cleaned', 'count', #gone)
return { kept, more, gone }
