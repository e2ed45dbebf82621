-- Reads jobs as rows of values. Where containers and status disagree, the container is right.
--@include due

-- Returns the container of a job, and its score there.
local function container_of(id, status, result, spots)
  if redis.call('SISMEMBER', ACTIVE, id) == 1 then return 'active', '' end
  local indexed = redis.call('ZSCORE', ORDER, id)
  if indexed and is_in_list(id, spots) then return 'waiting', '' end
  local due = redis.call('ZSCORE', DELAYED, id)
  if due then return 'delayed', due end
  if status == 'completed' or status == 'dead' or status == 'failed' then return status, '' end
  local tick = redis.call('ZSCORE', CRON, id)
  if tick then return 'cron', tick end
  if status == 'active' and redis.call('EXISTS', LOCK .. id) == 1 then return 'active', '' end
  if not indexed and is_in_list(id, spots) then return 'waiting', '' end
  if result then return result:find('"success":%s*true') and 'completed' or 'failed', '' end
  return status or 'waiting', ''
end

-- Appends to `rows`, per id: id, container, score, data, status, result, progress, claim.
local function add_rows(rows, kind, ids)
  if #ids == 0 then return end
  local data, statuses = strings_at(DATA, ids), strings_at(STATUS, ids)
  local results, progress, spots = strings_at(RESULT, ids), strings_at(PROGRESS, ids), {}
  for index, id in ipairs(ids) do
    local container, score = '', ''
    if data[index] then container, score = container_of(id, statuses[index], results[index], spots) end
    local claim = container == 'active' and redis.call('HGET', X .. 'claims:' .. kind, id) or ''
    for _, value in ipairs({ id, container, score, data[index] or '', statuses[index] or '', results[index] or '',
      progress[index] or '', claim }) do
      rows[#rows + 1] = value
    end
  end
end
