-- Stores finished jobs as they would be had they run here, each unless its id is taken.
-- KEYS[1] base of the queue; ARGV per job: id, place (`completed` or `failed`), score, number of items of its hash, the
-- items, number of side keys, then per side key its ending, number of items, the items.
-- Returns how many were new. Publishes no events: the jobs finished long ago.
--@include gate
--@include chunks

local base = KEYS[1]
local WRITE = { [':logs'] = 'RPUSH', [':dependencies'] = 'SADD', [':processed'] = 'HSET', [':failed'] = 'HSET',
  [':unsuccessful'] = 'ZADD' }
local at, new, highest = 1, 0, 0

local function items()
  local count = tonumber(ARGV[at])
  local found = {}
  for number = 1, count do found[number] = ARGV[at + number] end
  at = at + count + 1
  return found
end

while at <= #ARGV do
  local id, place, score = ARGV[at], ARGV[at + 1], ARGV[at + 2]
  at = at + 3
  local fields, sides = items(), tonumber(ARGV[at])
  at = at + 1
  local free = redis.call('EXISTS', base .. id) == 0
  if free then
    over_items('HSET', base .. id, fields)
    redis.call('ZADD', base .. place, score, id)
    new = new + 1
    if id:find('^[1-9]%d*$') and #id <= 15 then highest = math.max(highest, tonumber(id)) end
  end
  for _ = 1, sides do
    local ending = ARGV[at]
    at = at + 1
    local its = items()
    if free then over_items(WRITE[ending], base .. id .. ending, its) end
  end
end

-- BullMQ numbers its jobs without looking whether the number is taken, and would write over these.
if highest > (tonumber(redis.call('GET', base .. 'id') or 0) or 0) then
  redis.call('SET', base .. 'id', string.format('%.0f', highest))
end
event_limit(base)
return new
