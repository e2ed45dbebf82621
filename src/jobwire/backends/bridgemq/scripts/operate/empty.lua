-- Delete jobs of a type in one place, some at a time. KEYS[1] namespace; ARGV: type, place (`type`, `delayed`,
-- `completed`, `dead`, `claims`), how many, '' or the ms for which jobs must have been there. Returns the
-- ids.
--@include removing
local kind, place, step = ARGV[1], ARGV[2], tonumber(ARGV[3])
local latest = ARGV[4] == '' and '+inf' or server_now() - ARGV[4]
local key, ids = X .. place .. ':' .. kind, {}
if place == 'claims' then
  ids = redis.call('HKEYS', key)
  over_items('SREM', ACTIVE, ids)
  redis.call('DEL', key)
  delete_keys(ids)
  return ids
end
ids = redis.call('ZRANGEBYSCORE', key, '-inf', latest, 'LIMIT', 0, step)
if #ids == 0 then return ids end
if place == 'type' then
  remove_waiting(kind, ids)
  return ids
end
over_items('ZREM', key, ids)
if place == 'delayed' then over_items('ZREM', DELAYED, ids) end
if place == 'dead' then
  for _, id in ipairs(ids) do redis.call('LREM', DEADLETTER, 1, id) end
end
delete_keys(ids)
return ids
