-- Parents and children of flows. Relations are stored as full keys, `<prefix>:<queue>:<id>`.
--@include read_job

-- Returns the base and the id in a full key. The id follows the last colon, except for ids that contain colons
-- themselves (`repeat:x:1`): then the base is the shorter one that has settings or a counter.
local function split_key(key)
  local cut
  for position = #key, 1, -1 do
    if string.byte(key, position) == 58 then
      local base = string.sub(key, 1, position)
      if redis.call('EXISTS', base .. 'meta', base .. 'id') > 0 then
        return base, string.sub(key, position + 1)
      end
      cut = cut or position
    end
  end
  if not cut then return nil end
  return string.sub(key, 1, cut), string.sub(key, cut + 1)
end

-- Returns base, id and key of a job's parent, or nil for a job without one.
local function parent_of(base, id)
  local stored = fields_of(base .. id, 'parentKey', 'parent')
  if not stored[1] or stored[1] == '' then return nil end
  local parent = object_of(stored[2])
  if type(parent.queueKey) == 'string' and parent.id ~= nil and parent.id ~= cjson.null then
    local parent_id = tostring(parent.id)
    if stored[1] == parent.queueKey .. ':' .. parent_id then
      return parent.queueKey .. ':', parent_id, stored[1]
    end
  end
  local parent_base, parent_id = split_key(stored[1])
  return parent_base, parent_id, stored[1]
end
