-- Makes many jobs of one container ready, lowest score first.
-- KEYS[1] base of the queue; ARGV[1] `failed`, `completed` or `delayed`, ARGV[2] highest score, ARGV[3] how many.
-- Returns how many were moved.
-- As in BullMQ 5.62, priorities are ignored, the `delay` of a promoted job stays in its hash, and the parent of a child
-- does not wait for it again.
--@include chunks
--@include gate
--@include marker
--@include events

local FINISH = { failed = 'failedReason', completed = 'returnvalue' }
local base, container = KEYS[1], ARGV[1]
local ids = redis.call('ZRANGEBYSCORE', base .. container, '-inf', ARGV[2], 'LIMIT', 0, ARGV[3])
if #ids == 0 then return 0 end
for _, id in ipairs(ids) do
  if FINISH[container] then redis.pcall('HDEL', base .. id, 'finishedOn', 'processedOn', FINISH[container]) end
  add_event_and_trim(base, 'waiting', 'jobId', id, 'prev', container)
end
over_items('ZREM', base .. container, ids)
local target, blocked = gate(base)
over_items('LPUSH', target, ids)
if not blocked then mark_ready(base) end
return #ids
