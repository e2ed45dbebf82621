-- Removes finished jobs that are still as they were archived.
-- KEYS[1] namespace; ARGV: type, then per job: id, place (`completed` or `dead`), fingerprint.
-- Returns the ids that were removed. The fingerprint is that of `rows.py`.
-- A job stays if it waits or runs again, repeats by cron, is locked, or differs in anything.
--@include remove

local kind = ARGV[1]

local function fingerprint_of(id, place)
  local found = redis.call('MGET', DATA .. id, STATUS .. id, RESULT .. id, PROGRESS .. id)
  if not found[1] then return nil end
  local parts = { place, found[1] }
  for at = 2, 4 do
    parts[#parts + 1] = found[at] and '+' or '-'
    parts[#parts + 1] = found[at] or ''
  end
  local lines = redis.pcall('LRANGE', LOGS .. id, 0, -1)
  if not lines.err then
    for _, line in ipairs(lines) do parts[#parts + 1] = line end
  end
  local lengths = {}
  for at, part in ipairs(parts) do lengths[at] = #part end
  return redis.sha1hex(table.concat(lengths, ',') .. ';' .. table.concat(parts))
end

local function is_over(id, place)
  return redis.call('ZSCORE', X .. place .. ':' .. kind, id) and redis.call('EXISTS', LOCK .. id) == 0
    and redis.call('SISMEMBER', ACTIVE, id) == 0 and not redis.call('ZSCORE', ORDER, id)
    and not redis.call('ZSCORE', DELAYED, id) and not redis.call('ZSCORE', CRON, id)
    and redis.call('MGET', STATUS .. id)[1] == place
end

local removed = {}
for at = 2, #ARGV, 3 do
  local id, place, stamp = ARGV[at], ARGV[at + 1], ARGV[at + 2]
  if (place == 'completed' or place == 'dead') and is_over(id, place) and fingerprint_of(id, place) == stamp then
    redis.call('ZREM', X .. place .. ':' .. kind, id)
    -- The newest dead jobs are at the head; archived ones are old.
    if place == 'dead' then redis.call('LREM', DEADLETTER, -1, id) end
    delete_keys({ id })
    removed[#removed + 1] = id
  end
end
return removed
