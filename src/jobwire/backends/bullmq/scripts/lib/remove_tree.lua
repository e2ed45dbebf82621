-- Deletes a job together with its children.
-- A parent whose last child is deleted becomes ready. That includes a parent that is being deleted, so its events are
-- `waiting`, then `removed`.
--@include remove

-- Returns true if a worker runs the job or, with its children, one of them.
local function is_locked(base, id, with_children)
  if redis.call('EXISTS', base .. id .. ':lock') == 1 then return true end
  if not with_children then return false end
  for _, child in ipairs(redis.call('SMEMBERS', base .. id .. ':dependencies')) do
    local child_base, child_id = split_key(child)
    if child_base and is_locked(child_base, child_id, true) then return true end
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

local function remove_tree(base, id, with_children)
  local key = base .. id
  for _, child in ipairs(with_children and children_of(key) or {}) do
    local child_base, child_id = split_key(child)
    if child_base then remove_tree(child_base, child_id, true) end
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
