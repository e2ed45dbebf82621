-- Deletes a job and everything that belongs to it.
--@include family
--@include job_keys
--@include enqueue
--@include events

local SETS = { 'completed', 'waiting-children', 'delayed', 'failed', 'prioritized' }
local LISTS = { 'wait', 'paused', 'active' }

-- Takes the job out of its container. Returns the container's name, or "unknown".
local function take_from_container(base, id)
  for _, name in ipairs(SETS) do
    if redis.call('ZREM', base .. name, id) == 1 then return name end
  end
  for _, name in ipairs(LISTS) do
    -- Search from the end that runs first: callers that remove many jobs mostly do so in that order.
    if redis.call('LREM', base .. name, -1, id) > 0 then return name end
  end
  return 'unknown'
end

-- Deletes the deduplication key that the job holds, whatever time it had left, and the job that BullMQ 6 keeps in `dn:`
-- to follow the holder.
local function release_unique_key(base, id)
  local key = fields_of(base .. id, 'deid')[1]
  if key and redis.call('GET', base .. 'de:' .. key) == id then
    redis.call('DEL', base .. 'de:' .. key, base .. 'dn:' .. key)
  end
end

-- Returns true if a scheduler needs this job to make the next one: then it must not be deleted.
local function is_schedulers_current_job(base, id)
  local scheduler = fields_of(base .. id, 'rjk')[1]
  if not scheduler then return false end
  local at = redis.call('ZSCORE', base .. 'repeat', scheduler)
  return at and id == 'repeat:' .. scheduler .. ':' .. string.format('%.0f', at)
end

-- Removes a job without a result from its parent's children. Returns base and id of the parent if that was the last
-- child that it waited for: the parent is then out of `waiting-children`, and the caller must put it elsewhere.
local function leave_family(base, id)
  local parent_base, parent_id, parent_key = parent_of(base, id)
  if not parent_key or redis.call('SREM', parent_key .. ':dependencies', base .. id) == 0 then return nil end
  if redis.call('SCARD', parent_key .. ':dependencies') > 0 then return nil end
  if redis.call('ZREM', parent_base .. 'waiting-children', parent_id) == 0 then return nil end
  return parent_base, parent_id
end

-- Makes the parent of a removed child the next to run, whatever its priority or delay, as BullMQ 5.62 does.
local function send_to_front(base, id)
  if redis.call('EXISTS', base .. id) == 1 then push_to_list(base, id, true) end
end

-- Deletes a job as BullMQ does in bulk: without events, and together with a parent of the same queue that has no child
-- left. The caller takes the job out of its container.
local function delete_job(base, id)
  local parent_base, parent_id = leave_family(base, id)
  release_unique_key(base, id)
  delete_job_keys(base, { id })
  if not parent_id then return end
  if parent_base == base then
    delete_job(base, parent_id)
  else
    send_to_front(parent_base, parent_id)
  end
end
