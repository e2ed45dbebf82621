-- Removes finished jobs that are still as they were archived.
-- KEYS[1] base of the queue; ARGV per job: id, place (`completed` or `failed`), fingerprint.
-- Returns the ids that were removed. The fingerprint is that of `fingerprint.py`.
-- A job stays if it is elsewhere by now, differs in anything, is locked, or if its parent still waits for it. Removed
-- jobs go as BullMQ's own cleaning takes them: one event for all.
--@include remove

local base = KEYS[1]

-- Lua compares texts by the server's locale; these must be in the order of their bytes.
local function comes_before(one, other)
  local shorter = math.min(#one, #other)
  for at = 1, shorter do
    local a, b = string.byte(one, at), string.byte(other, at)
    if a ~= b then return a < b end
  end
  return #one < #other
end

local function add_all(parts, items)
  for _, item in ipairs(items) do parts[#parts + 1] = item end
end

-- Appends the fields of a hash in their order, then their values.
local function add_hash(parts, flat)
  local names, values = {}, {}
  for at = 1, #flat, 2 do
    names[#names + 1] = flat[at]
    values[flat[at]] = flat[at + 1]
  end
  table.sort(names, comes_before)
  add_all(parts, names)
  for _, name in ipairs(names) do parts[#parts + 1] = values[name] end
end

local SIDES = {
  { ':logs', { 'LRANGE', 0, -1 } },
  { ':dependencies', { 'SMEMBERS' } },
  { ':processed', { 'HGETALL' } },
  { ':failed', { 'HGETALL' } },
  { ':unsuccessful', { 'ZRANGE', 0, -1, 'WITHSCORES' } },
}

local function add_side(parts, key, ending, command)
  local found = redis.pcall(command[1], key .. ending, unpack(command, 2))
  if found.err or #found == 0 then return end
  parts[#parts + 1] = ending
  parts[#parts + 1] = tostring(#found)
  if ending == ':dependencies' then
    table.sort(found, comes_before)
    add_all(parts, found)
  elseif command[1] == 'HGETALL' then
    add_hash(parts, found)
  else
    add_all(parts, found)
  end
end

local function fingerprint_of(key, place)
  local fields = redis.pcall('HGETALL', key)
  if fields.err or #fields == 0 then return nil end
  local parts = { place, tostring(#fields / 2) }
  add_hash(parts, fields)
  local keys = {}
  for at, side in ipairs(SIDES) do keys[at] = key .. side[1] end
  if redis.call('EXISTS', unpack(keys)) > 0 then
    for _, side in ipairs(SIDES) do add_side(parts, key, side[1], side[2]) end
  end
  local lengths = {}
  for at, part in ipairs(parts) do lengths[at] = #part end
  return redis.sha1hex(table.concat(lengths, ',') .. ';' .. table.concat(parts))
end

-- A parent in another slot of a cluster can't be looked at: then the job stays.
local function is_awaited(id)
  local _, _, parent = parent_of(base, id)
  if not parent then return false end
  local answer = redis.pcall('SISMEMBER', parent .. ':dependencies', base .. id)
  return type(answer) ~= 'number' or answer == 1
end

local removed, taken = {}, { completed = {}, failed = {} }
for at = 1, #ARGV, 3 do
  local id, place, stamp = ARGV[at], ARGV[at + 1], ARGV[at + 2]
  local key = base .. id
  if taken[place] and redis.call('ZSCORE', base .. place, id) and redis.call('EXISTS', key .. ':lock') == 0
    and fingerprint_of(key, place) == stamp and not is_awaited(id) then
    delete_job(base, id)
    removed[#removed + 1] = id
    table.insert(taken[place], id)
  end
end
for place, ids in pairs(taken) do over_items('ZREM', base .. place, ids) end
if #removed > 0 then add_event(base, 'cleaned', 'count', #removed) end
return removed
