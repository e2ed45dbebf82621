-- Lists schedulers, the soonest first.
-- KEYS[1] base of the queue; ARGV[1] and ARGV[2] first and last position.
-- Returns id, next time in ms and flat record of each scheduler, one after another.
--@include read_job

local base = KEYS[1]
local found = {}
local rows = redis.call('ZRANGE', base .. 'repeat', ARGV[1], ARGV[2], 'WITHSCORES')
for i = 1, #rows, 2 do
  found[#found + 1] = rows[i]
  found[#found + 1] = rows[i + 1]
  found[#found + 1] = all_fields_of(base .. 'repeat:' .. rows[i])
end
return found
