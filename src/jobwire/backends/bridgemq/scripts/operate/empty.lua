-- Deletes jobs of a type in one container, some at a time. KEYS[1] namespace; ARGV: type, container (`type`, `delayed`,
-- `completed`, `dead`, `claims`), how many, '' or the ms for which jobs must have been there. Returns the ids.
--@include remove
local kind, container, step = ARGV[1], ARGV[2], tonumber(ARGV[3])
local latest = ARGV[4] == '' and '+inf' or server_now() - ARGV[4]
local key, ids = X .. container .. ':' .. kind, {}
if container == 'claims' then
  ids = redis.call('HKEYS', key)
  over_items('SREM', ACTIVE, ids)
  redis.call('DEL', key)
  delete_keys(ids)
  return ids
end
ids = redis.call('ZRANGEBYSCORE', key, '-inf', latest, 'LIMIT', 0, step)
if #ids == 0 then return ids end
if container == 'type' then
  remove_waiting(kind, ids)
  return ids
end
over_items('ZREM', key, ids)
if container == 'delayed' then over_items('ZREM', DELAYED, ids) end
if container == 'dead' then
  for _, id in ipairs(ids) do redis.call('LREM', DEADLETTER, 1, id) end
end
delete_keys(ids)
return ids
