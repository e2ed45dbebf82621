-- Removes jobs that wait or are delayed, as the backend's `remove` does it: with their children, and an event for each.
-- KEYS[1] base of the queue; ARGV ids. In the order in which the jobs would run, none has to be searched for.
-- Returns one answer per id: 1 removed, 0 no such job, -1 it is in another state or a scheduler's current job, -2 a
-- worker runs it or a child.
--@include remove_tree

local base = KEYS[1]
local LISTS_OF_WAITING, SETS_OF_WAITING = { 'paused', 'wait' }, { 'prioritized', 'delayed' }
local ELSEWHERE = { 'completed', 'failed', 'waiting-children' }

local function is_elsewhere(id)
  for _, name in ipairs(ELSEWHERE) do
    if redis.call('ZSCORE', base .. name, id) then return true end
  end
  return redis.call('LPOS', base .. 'active', id) ~= false
end

-- A job in no container is between two for an instant, or a broken client left it behind: it counts as waiting.
local function is_waiting(id)
  for _, name in ipairs(SETS_OF_WAITING) do
    if redis.call('ZSCORE', base .. name, id) then return true end
  end
  for _, name in ipairs(LISTS_OF_WAITING) do
    if redis.call('LPOS', base .. name, id, 'RANK', -1) then return true end
  end
  return not is_elsewhere(id)
end

-- Takes a job out of the container that it waits in. Returns the container's name, or nil if it is in another state.
local function take(id)
  for _, name in ipairs(LISTS_OF_WAITING) do
    if redis.call('LINDEX', base .. name, -1) == id then
      redis.call('RPOP', base .. name)
      return name
    end
  end
  for _, name in ipairs(SETS_OF_WAITING) do
    if redis.call('ZREM', base .. name, id) == 1 then return name end
  end
  for _, name in ipairs(LISTS_OF_WAITING) do
    if redis.call('LREM', base .. name, -1, id) > 0 then return name end
  end
  return not is_elsewhere(id) and 'unknown' or nil
end

local alone = {}

local function answer(id)
  local key = base .. id
  local fields = fields_of(key, 'timestamp', 'rjk', 'parentKey', 'deid')
  if not fields[1] then return 0 end
  if fields[2] and is_schedulers_current_job(base, id) then return -1 end
  if fields[3] or redis.call('EXISTS', key .. ':lock', key .. ':dependencies', key .. ':processed', key .. ':failed',
    key .. ':unsuccessful') > 0 then
    if is_locked(base, id, true) then return -2 end
    if not is_waiting(id) then return -1 end
    remove_tree(base, id, true)
    return 1
  end
  -- A job without relatives, as most are: its keys are deleted together with those of the others.
  local container = take(id)
  if not container then return -1 end
  if fields[4] then release_unique_key(base, id) end
  alone[#alone + 1] = id
  add_event_and_trim(base, 'removed', 'jobId', id, 'prev', container)
  return 1
end

local answers, seen = {}, {}
for index, id in ipairs(ARGV) do
  -- The keys of a job that was removed by this call are still there.
  answers[index] = seen[id] and 0 or answer(id)
  seen[id] = true
end
delete_job_keys(base, alone)
return answers
