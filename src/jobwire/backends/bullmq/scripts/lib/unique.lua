-- Deduplication keys: `de:<key>` holds the id of the job that owns the key.
--@include gate
--@include marker
--@include delayed
--@include prioritized

-- Deletes the key of a finished job, unless the key has a time to live. Returns true if it was deleted.
local function release_unique(base, key, id)
  local owner = base .. 'de:' .. key
  local left = redis.call('PTTL', owner)
  if left == 0 or (left == -1 and redis.call('GET', owner) == id) then return redis.call('DEL', owner) == 1 end
  return false
end

-- Adds the job that BullMQ >= 5.72 keeps in `dn:<key>`: the latest one that was refused while the owner ran. The worker
-- that finishes the owner must add it.
local function add_unique_successor(base, key, now)
  local pending = base .. 'dn:' .. key
  local found = redis.pcall('HGETALL', pending)
  if found.err or #found == 0 then return end
  local fields = {}
  for index = 1, #found, 2 do fields[found[index]] = found[index + 1] end
  local readable, opts = pcall(cjson.decode, fields.opts or '')
  if not readable or type(opts) ~= 'table' then opts = {} end
  redis.call('DEL', pending)
  local number = redis.call('INCR', base .. 'id')
  local id = fields.jid and fields.jid ~= '' and fields.jid or tostring(number)
  local delay, priority = tonumber(opts.delay) or 0, tonumber(opts.priority) or 0
  redis.call('SET', base .. 'de:' .. key, id)
  redis.call('HSET', base .. id, 'name', fields.name or '', 'data', fields.data or '{}', 'opts', fields.opts or '{}',
    'timestamp', now, 'delay', delay, 'priority', priority, 'deid', key)
  if fields.pk then
    redis.call('HSET', base .. id, 'parentKey', fields.pk, 'parent', fields.pd or '{}')
    redis.call('SADD', fields.pdk or (fields.pk .. ':dependencies'), base .. id)
  end
  if fields.rjk then redis.call('HSET', base .. id, 'rjk', fields.rjk) end
  redis.call('XADD', base .. 'events', '*', 'event', 'added', 'jobId', id, 'name', fields.name or '')
  if delay > 0 then
    local due = tonumber(now) + delay
    insert_delayed(base, id, due)
    redis.call('XADD', base .. 'events', '*', 'event', 'delayed', 'jobId', id, 'delay', due)
    mark_delayed(base)
    return
  end
  local target, blocked = gate(base)
  if priority == 0 then
    redis.call(opts.lifo and 'RPUSH' or 'LPUSH', target, id)
  else
    insert_prioritized(base, id, priority)
  end
  if not blocked then mark_ready(base) end
  redis.call('XADD', base .. 'events', '*', 'event', 'waiting', 'jobId', id)
end
