-- Taking a job and everything that is its own out of the store.
--@include family
--@include job_keys
--@include placing
--@include telling

local SETS = { 'completed', 'waiting-children', 'delayed', 'failed', 'prioritized' }
local LISTS = { 'wait', 'paused', 'active' }

-- The name of the place that the job was taken from, or "unknown".
local function take_from_its_place(base, id)
  for _, name in ipairs(SETS) do
    if redis.call('ZREM', base .. name, id) == 1 then return name end
  end
  for _, name in ipairs(LISTS) do
    -- From the end that runs first: those who remove many mostly remove them in the order of their run.
    if redis.call('LREM', base .. name, -1, id) > 0 then return name end
  end
  return 'unknown'
end

-- A deduplication key is given back by the job that holds it, whatever time it had left; with it goes the job that
-- BullMQ 6 keeps in `dn:` to follow the holder.
local function release_unique_key(base, id)
  local key = fields_of(base .. id, 'deid')[1]
  if key and redis.call('GET', base .. 'de:' .. key) == id then
    redis.call('DEL', base .. 'de:' .. key, base .. 'dn:' .. key)
  end
end

-- The job that a scheduler counts on to make the next one must not be taken from it.
local function is_schedulers_current_job(base, id)
  local scheduler = fields_of(base .. id, 'rjk')[1]
  if not scheduler then return false end
  local at = redis.call('ZSCORE', base .. 'repeat', scheduler)
  return at and id == 'repeat:' .. scheduler .. ':' .. string.format('%.0f', at)
end

-- A job leaves its parent without a result. Returns base and id of the parent if that was its last child and it waits
-- for nothing else: it is then out of `waiting-children`, and the caller says where it goes.
local function leave_family(base, id)
  local parent_base, parent_id, parent_key = parent_of(base, id)
  if not parent_key or redis.call('SREM', parent_key .. ':dependencies', base .. id) == 0 then return nil end
  if redis.call('SCARD', parent_key .. ':dependencies') > 0 then return nil end
  if redis.call('ZREM', parent_base .. 'waiting-children', parent_id) == 0 then return nil end
  return parent_base, parent_id
end

-- The parent of a removed child runs next, whatever its priority or delay: so BullMQ 5.62 has it.
local function send_to_front(base, id)
  if redis.call('EXISTS', base .. id) == 1 then push_to_list(base, id, true) end
end

-- How BullMQ deletes in bulk: without events, and together with a parent of the same queue that has no child left.
-- The caller takes the job out of its place.
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
