-- The keys of a job, without its lock.
--@include chunks

local function add_job_keys(keys, base, id)
  local job = base .. id
  local n = #keys
  keys[n + 1], keys[n + 2], keys[n + 3] = job, job .. ':logs', job .. ':dependencies'
  keys[n + 4], keys[n + 5], keys[n + 6] = job .. ':processed', job .. ':failed', job .. ':unsuccessful'
end

-- Deletes the keys of these jobs. Returns the number of keys that existed.
local function delete_job_keys(base, ids)
  local keys = {}
  for _, id in ipairs(ids) do add_job_keys(keys, base, id) end
  return over_keys('DEL', keys)
end
