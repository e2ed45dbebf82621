-- Renews the locks that still have the worker's token. Not by SET, which a server without memory left refuses.
--
-- KEYS[1]  base of the queue
-- ARGV     lease ms, then per job: id, token
-- Returns  the positions (from 1) of the jobs whose claim is lost
--@include chunks
--@include get_all

local base, lease = KEYS[1], ARGV[1]
local locks, ids = {}, {}
for index = 2, #ARGV, 2 do locks[#locks + 1] = base .. ARGV[index] .. ':lock' end
local held, lost = get_all(locks), {}
for position, lock in ipairs(locks) do
  if held[position] == ARGV[2 * position + 1] then
    redis.call('PEXPIRE', lock, lease)
    ids[#ids + 1] = ARGV[2 * position]
  else
    lost[#lost + 1] = position
  end
end
over_items('SREM', base .. 'stalled', ids)
return lost
