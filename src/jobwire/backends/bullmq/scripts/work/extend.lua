-- Renew the locks that are still ours. Not by SET, which a server without memory left refuses.
--
-- KEYS[1]  base of the queue
-- ARGV     lease ms, then per job: id, token
-- Returns  the places (from 1) of the jobs that are no longer ours
--@include chunks

local base, lease = KEYS[1], ARGV[1]
local locks, ids = {}, {}
for index = 2, #ARGV, 2 do locks[#locks + 1] = base .. ARGV[index] .. ':lock' end
local held, lost = get_all(locks), {}
for place, lock in ipairs(locks) do
  if held[place] == ARGV[2 * place + 1] then
    redis.call('PEXPIRE', lock, lease)
    ids[#ids + 1] = ARGV[2 * place]
  else
    lost[#lost + 1] = place
  end
end
call_many('SREM', base .. 'stalled', ids)
return lost
