-- A parent waits in `waiting-children` until its last child has finished. It may be in another queue than the child.
--@include gate
--@include marker
--@include prioritized

-- Returns the base of the parent's queue, the parent's id, and the options for this child, from a job's two fields. An
-- id may contain colons, so its start can't be seen in the key alone: it is in the `parent` JSON.
local function read_parent(parent_key, text)
  local known, parent = pcall(cjson.decode, text or '')
  if not known or type(parent) ~= 'table' then parent = {} end
  local id = parent.id ~= nil and tostring(parent.id) or parent_key:match('([^:]*)$')
  return parent_key:sub(1, #parent_key - #id), id, parent
end

-- Makes a waiting parent ready, or delayed if it has a delay. Returns false if it is not waiting. `now` in ms.
local function release_parent(base, id, now)
  local job = base .. id
  if redis.call('EXISTS', job) == 0 or redis.call('ZREM', base .. 'waiting-children', id) == 0 then return false end
  local fields = redis.call('HMGET', job, 'delay', 'priority')
  local delay, priority = tonumber(fields[1] or 0) or 0, tonumber(fields[2] or 0) or 0
  if delay > 0 then
    local due = tonumber(now) + delay
    redis.call('ZADD', base .. 'delayed', due * 4096, id)
    redis.call('XADD', base .. 'events', '*', 'event', 'delayed', 'jobId', id, 'delay', due)
    mark_delayed(base)
    return true
  end
  local target, blocked = gate(base)
  if priority == 0 then
    redis.call('RPUSH', target, id)
  else
    insert_prioritized(base, id, priority)
  end
  if not blocked then mark_ready(base) end
  redis.call('XADD', base .. 'events', '*', 'event', 'waiting', 'jobId', id, 'prev', 'waiting-children')
  return true
end

local function release_if_done(base, id, now)
  if redis.call('SCARD', base .. id .. ':dependencies') == 0 then release_parent(base, id, now) end
end

-- Removes a child that leaves no result: it was removed, or failed with the option to be ignored.
local function leave_parent(parent_key, parent_text, child_key, now)
  if redis.call('SREM', parent_key .. ':dependencies', child_key) == 0 then return end
  local base, id = read_parent(parent_key, parent_text)
  release_if_done(base, id, now)
end

-- Stores the value of a completed child with its parent.
local function child_completed(parent_key, parent_text, child_key, value, now)
  if redis.call('SREM', parent_key .. ':dependencies', child_key) == 0 then return end
  local base, id = read_parent(parent_key, parent_text)
  redis.call('HSET', parent_key .. ':processed', child_key, value)
  release_if_done(base, id, now)
end

-- Updates the parent of a child that has failed for good, by the flag that the child was added with.
local function child_failed(parent_key, parent_text, child_key, reason, now)
  local base, id, parent = read_parent(parent_key, parent_text)
  local waiting = parent.fpof or parent.cpof or parent.idof or parent.rdof
  if not waiting or redis.call('SREM', parent_key .. ':dependencies', child_key) == 0 then return end
  if parent.fpof then
    redis.call('ZADD', parent_key .. ':unsuccessful', now, child_key)
    if redis.call('EXISTS', parent_key) == 0 then return end
    local failure = 'child ' .. child_key .. ' failed'
    if redis.call('ZSCORE', base .. 'waiting-children', id) then
      redis.call('HSET', parent_key, 'defa', failure)
      release_parent(base, id, now)
    elseif redis.call('ZREM', base .. 'delayed', id) == 1 then
      redis.call('HSET', parent_key, 'delay', 0, 'defa', failure)
      redis.call('ZADD', base .. 'waiting-children', now, id)
      release_parent(base, id, now)
    elseif not redis.call('ZSCORE', base .. 'failed', id) then
      redis.call('HSET', parent_key, 'defa', failure)
    end
  elseif parent.cpof then
    redis.call('HSET', parent_key .. ':failed', child_key, reason)
    release_parent(base, id, now)
  else
    release_if_done(base, id, now)
    if parent.idof then redis.call('HSET', parent_key .. ':failed', child_key, reason) end
  end
end
