-- A page of the jobs in some places, one place after the other.
-- KEYS[1] base of the queue; ARGV[1] how many; ARGV[2..4] where the last page ended: place, score, id (place "" for
-- the first page); ARGV[5..] pairs of a place and its order: `list` from the end that runs first, `up` or `down` by
-- score. Returns place, id, score ("" in a list) and flat hash of each job, one after another.
-- The page goes on after the job it ended with. If that job has left, it goes on after the jobs of lower score; in a
-- list it starts at the running end again, since that is where the others have moved. So a job that stays in its
-- place is never skipped; it may be seen twice.

--@include reading_job

local base, wanted = KEYS[1], tonumber(ARGV[1])
local after = { place = ARGV[2], score = ARGV[3], id = ARGV[4] }

local function start_in_list(key)
  local position = redis.call('LPOS', key, after.id, 'RANK', -1)
  return position and redis.call('LLEN', key) - position or 0
end

local function start_in_set(key, order)
  if redis.call('ZSCORE', key, after.id) == after.score then
    return redis.call(order == 'up' and 'ZRANK' or 'ZREVRANK', key, after.id) + 1
  end
  if order == 'up' then return redis.call('ZCOUNT', key, '-inf', '(' .. after.score) end
  return redis.call('ZCOUNT', key, '(' .. after.score, '+inf')
end

local found = {}
local function add(place, id, score)
  found[#found + 1] = place
  found[#found + 1] = id
  found[#found + 1] = score
  found[#found + 1] = all_fields_of(base .. id)
end

local begun = after.place == ''
for i = 5, #ARGV, 2 do
  local place, order = ARGV[i], ARGV[i + 1]
  local key = base .. place
  local left = wanted - #found / 4
  local continued = place == after.place
  begun = begun or continued
  if begun and left > 0 then
    if order == 'list' then
      local start = continued and start_in_list(key) or 0
      local ids = redis.call('LRANGE', key, -(start + left), -(start + 1))
      for n = #ids, 1, -1 do add(place, ids[n], '') end
    else
      local start = continued and start_in_set(key, order) or 0
      local read = order == 'up' and 'ZRANGE' or 'ZREVRANGE'
      local rows = redis.call(read, key, start, start + left - 1, 'WITHSCORES')
      for n = 1, #rows, 2 do add(place, rows[n], rows[n + 1]) end
    end
  end
end
return found
