-- Extends leases. KEYS[1] namespace; ARGV: type, lease ms, then id, server, token per claim.
-- Returns the positions (from 1) of the claims that are lost.
--@include finish
local lost, claims, now = {}, claims_of(ARGV[1]), server_now()
for at = 3, #ARGV, 3 do
  local id, server = ARGV[at], ARGV[at + 1]
  if redis.call('MGET', LOCK .. id)[1] == server and is_of(redis.call('HGET', claims, id), ARGV[at + 2]) then
    redis.call('PEXPIRE', LOCK .. id, ARGV[2])
    redis.call('SET', HEARTBEAT .. server, now, 'EX', 30)
  else
    lost[#lost + 1] = (at - 3) / 3 + 1
  end
end
return lost
