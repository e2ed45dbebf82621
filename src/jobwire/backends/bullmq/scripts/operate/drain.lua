-- Deletes waiting or delayed jobs, those next to run first, without events.
-- KEYS[1] base of the queue; ARGV[1] the container (wait, paused, prioritized, delayed), ARGV[2] how many at most,
-- ARGV[3] how many at the front were kept by earlier calls.
-- Returns how many were checked beyond those, and how many of them were kept.
-- Schedulers' current jobs are kept in their position: without them their schedulers would stop.
--@include remove

local base, container, most, kept_before = KEYS[1], ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local key = base .. container

if container == 'wait' or container == 'paused' then
  local ids = redis.call('LRANGE', key, -(kept_before + most), -1)
  redis.call('LTRIM', key, 0, -(kept_before + most) - 1)
  local kept = {}
  for _, id in ipairs(ids) do
    if is_schedulers_current_job(base, id) then
      kept[#kept + 1] = id
    else
      delete_job(base, id)
    end
  end
  if #kept > 0 then redis.call('RPUSH', key, unpack(kept)) end
  return { math.max(#ids - kept_before, 0), #kept - kept_before }
end

local ids = redis.call('ZRANGE', key, kept_before, kept_before + most - 1)
local gone = {}
for _, id in ipairs(ids) do
  if not is_schedulers_current_job(base, id) then
    delete_job(base, id)
    gone[#gone + 1] = id
  end
end
if #gone > 0 then redis.call('ZREM', key, unpack(gone)) end
return { #ids, #ids - #gone }
