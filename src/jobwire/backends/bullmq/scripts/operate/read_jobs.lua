-- Reads jobs by their ids, each with the container that it is in.
-- KEYS[1] base of the queue; ARGV ids. Returns per id the container ("" if none), its score in `delayed` (else "") and
-- the flat hash (empty if none).
-- Containers are tried in the order in which BullMQ finds a job's state. Lists have no index: a few ids are looked up
-- one by one, for many a list is walked once.

--@include read_job

local base = KEYS[1]
local FEW = 8

local container_of, not_found = {}, {}

local function find(id)
  for _, name in ipairs({ 'completed', 'failed', 'delayed', 'prioritized' }) do
    if redis.call('ZSCORE', base .. name, id) then
      container_of[id] = name
      return
    end
  end
  container_of[id] = ''
  not_found[id] = is_job(base, id) or nil
end

local function set_container(id, name)
  container_of[id] = name
  not_found[id] = nil
end

local function look_up(name)
  for id in pairs(not_found) do
    if redis.call('LPOS', base .. name, id) then set_container(id, name) end
  end
end

local function walk(name)
  local at = 0
  repeat
    local chunk = redis.call('LRANGE', base .. name, at, at + 999)
    for _, id in ipairs(chunk) do
      if not_found[id] then set_container(id, name) end
    end
    at = at + 1000
  until #chunk < 1000 or not next(not_found)
end

for _, id in ipairs(ARGV) do
  if not container_of[id] then find(id) end
end
for _, name in ipairs({ 'active', 'wait', 'paused' }) do
  local left = 0
  for _ in pairs(not_found) do left = left + 1 end
  if left > FEW then walk(name) elseif left > 0 then look_up(name) end
end
for id in pairs(not_found) do
  if redis.call('ZSCORE', base .. 'waiting-children', id) then container_of[id] = 'waiting-children' end
end

local found = {}
for _, id in ipairs(ARGV) do
  local is_there = container_of[id] ~= '' or not_found[id]
  found[#found + 1] = container_of[id]
  found[#found + 1] = container_of[id] == 'delayed' and redis.call('ZSCORE', base .. 'delayed', id) or ''
  found[#found + 1] = is_there and all_fields_of(base .. id) or {}
end
return found
