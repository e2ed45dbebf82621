-- Deletes finished jobs beyond what is to be kept: by age in seconds first, then by number, oldest first.
--@include job_keys
--@include parent

-- One call deletes no more than this, so that a new rule over a million old jobs does not block the server.
local PRUNE_LIMIT = 10000

local function forget_finished(base, set, ids, now)
  if #ids == 0 then return end
  for _, id in ipairs(ids) do
    local parent = redis.pcall('HMGET', base .. id, 'parentKey', 'parent')
    if parent[1] then pcall(leave_parent, parent[1], parent[2], base .. id, now) end
  end
  delete_job_keys(base, ids)
  over_items('ZREM', set, ids)
end

-- `count` and `age` are texts, '' for none. A negative count keeps all.
local function prune(base, set, count, age, now)
  if age ~= '' then
    local oldest = tonumber(now) - tonumber(age) * 1000
    forget_finished(base, set, redis.call('ZRANGEBYSCORE', set, '-inf', oldest, 'LIMIT', 0, PRUNE_LIMIT), now)
  end
  local keep = count ~= '' and tonumber(count) or -1
  if keep > 0 then
    local excess = math.min(redis.call('ZCARD', set) - keep, PRUNE_LIMIT)
    if excess > 0 then forget_finished(base, set, redis.call('ZRANGE', set, 0, excess - 1), now) end
  end
end
