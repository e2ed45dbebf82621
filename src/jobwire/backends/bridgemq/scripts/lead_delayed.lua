-- The leader moves due jobs of all types to waiting. KEYS[1] namespace; ARGV: scheduler id, now ms, most at once.
-- Returns how many were due, -1 if the caller does not lead.
--@include leader
if not leads() then return -1 end
local now = ARGV[2]
local ids = redis.call('ZRANGEBYSCORE', DELAYED, '-inf', now, 'LIMIT', 0, ARGV[3])
if #ids > 0 then
  adopt_ends(now)
  move_due(ids, now)
  redis.call('PUBLISH', X .. 'wake', '*')
end
return #ids
