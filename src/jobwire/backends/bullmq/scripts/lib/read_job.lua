-- Reads values that another client may have written in a wrong form.

-- Returns a stored JSON object, or an empty table for anything else.
local function object_of(text)
  if not text then return {} end
  local ok, value = pcall(cjson.decode, text)
  if ok and type(value) == 'table' then return value end
  return {}
end

-- Returns fields of a hash, false for each that is missing. All are missing if the key is of another type.
local function fields_of(key, ...)
  local values = redis.pcall('HMGET', key, ...)
  if values.err then
    values = {}
    for i = 1, select('#', ...) do values[i] = false end
  end
  return values
end

local function all_fields_of(key)
  local fields = redis.pcall('HGETALL', key)
  return fields.err and {} or fields
end

-- Returns true for a job, false for another key of the queue whose name was given as an id (`meta`, `wait`).
local function is_job(base, id)
  return fields_of(base .. id, 'timestamp')[1] ~= false
end
