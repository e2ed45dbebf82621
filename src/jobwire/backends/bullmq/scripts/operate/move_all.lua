-- Makes many jobs of one place ready, those that came there first before the others.
-- KEYS[1] base of the queue; ARGV[1] `failed`, `completed` or `delayed`, ARGV[2] highest score, ARGV[3] how many.
-- Returns how many were moved.
-- As BullMQ 5.62 has it, priorities are passed over, the `delay` of a promoted job stays in its hash, and a child does
-- not go back among those that its parent waits for.
--@include chunks
--@include gate
--@include marker
--@include telling

local FINISH = { failed = 'failedReason', completed = 'returnvalue' }
local base, place = KEYS[1], ARGV[1]
local ids = redis.call('ZRANGEBYSCORE', base .. place, '-inf', ARGV[2], 'LIMIT', 0, ARGV[3])
if #ids == 0 then return 0 end
for _, id in ipairs(ids) do
  if FINISH[place] then redis.pcall('HDEL', base .. id, 'finishedOn', 'processedOn', FINISH[place]) end
  tell_trimmed(base, 'waiting', 'jobId', id, 'prev', place)
end
call_many('ZREM', base .. place, ids)
local target, blocked = gate(base)
call_many('LPUSH', target, ids)
if not blocked then mark_ready(base) end
return #ids
