-- Makes due jobs of all types ready, for the leader. KEYS[1] namespace; ARGV: scheduler id, most at once. Returns how
-- many were due, -1 if the caller does not lead; then id and reason of each job that was set aside since the last call.
--@include leader
if not leads() then return { -1 } end
local now = server_now()
local ids = redis.call('ZRANGEBYSCORE', DELAYED, '-inf', now, 'LIMIT', 0, ARGV[2])
if #ids > 0 then
  adopt_ends(now)
  move_due(ids, now)
  redis.call('PUBLISH', X .. 'wake', '*')
end
local aside = redis.call('LRANGE', ASIDE, 0, -1)
if #aside > 0 then redis.call('DEL', ASIDE) end
return { #ids, unpack(aside) }
