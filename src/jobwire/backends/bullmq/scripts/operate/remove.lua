-- Deletes jobs and everything that belongs to them.
-- KEYS[1] base of the queue; ARGV[1] '1' to delete their children too, ARGV[2..] ids.
-- Returns one answer per id: 1 done, 0 no such job, -1 a scheduler's current job, -2 a worker runs it or a child.
-- A parent whose last child is deleted becomes ready. That includes a parent that is being deleted, so its events are
-- `waiting`, then `removed`.
--@include remove

local with_children = ARGV[1] == '1'

local function is_locked(base, id)
  if redis.call('EXISTS', base .. id .. ':lock') == 1 then return true end
  if not with_children then return false end
  for _, child in ipairs(redis.call('SMEMBERS', base .. id .. ':dependencies')) do
    local child_base, child_id = split_key(child)
    if child_base and is_locked(child_base, child_id) then return true end
  end
  return false
end

local function children_of(key)
  local children = {}
  local function gather(keys)
    for _, child in ipairs(keys) do children[#children + 1] = child end
  end
  gather(redis.call('HKEYS', key .. ':processed'))
  gather(redis.call('HKEYS', key .. ':failed'))
  gather(redis.call('ZRANGE', key .. ':unsuccessful', 0, -1))
  gather(redis.call('SMEMBERS', key .. ':dependencies'))
  return children
end

local function remove(base, id)
  local key = base .. id
  for _, child in ipairs(with_children and children_of(key) or {}) do
    local child_base, child_id = split_key(child)
    if child_base then remove(child_base, child_id) end
  end
  local parent_base, parent_id = leave_family(base, id)
  if parent_id then
    send_to_front(parent_base, parent_id)
    add_event(parent_base, 'waiting', 'jobId', parent_id, 'prev', 'waiting-children')
  end
  local container = take_from_container(base, id)
  release_unique_key(base, id)
  if delete_job_keys(base, { id }) > 0 then
    add_event_and_trim(base, 'removed', 'jobId', id, 'prev', container)
  end
end

local function answer(base, id)
  if not is_job(base, id) then
    -- The entry of a job that is gone is removed as well.
    take_from_container(base, id)
    return 0
  end
  if is_schedulers_current_job(base, id) then return -1 end
  if is_locked(base, id) then return -2 end
  remove(base, id)
  return 1
end

local answers = {}
for i = 2, #ARGV do answers[i - 1] = answer(KEYS[1], ARGV[i]) end
return answers
