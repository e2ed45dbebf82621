-- Removes jobs that wait or are delayed, as the backend's `act` does it, but all of a call together.
-- KEYS[1] namespace; ARGV: type, then ids. In the order in which the jobs would run, none has to be searched for.
-- Returns one answer per id: 1 removed, 0 no such job of this type, -1 it is in another state or repeats by cron, -2 a
-- worker runs it.
--@include remove
--@include rows

local kind, ids = ARGV[1], {}
for index = 2, #ARGV do ids[index - 1] = ARGV[index] end
local data, statuses, results = strings_at(DATA, ids), strings_at(STATUS, ids), strings_at(RESULT, ids)
local locks, cron = strings_at(LOCK, ids), scores_of(CRON, ids)
local indexed, indexed_delayed = scores_of(X .. 'type:' .. kind, ids), scores_of(X .. 'delayed:' .. kind, ids)

-- What the index of the type has need not be decoded.
local function is_of_type(index)
  if not data[index] then return false end
  if indexed[index] or indexed_delayed[index] then return true end
  local fine, job = pcall(cjson.decode, data[index])
  return fine and type(job) == 'table' and job.type == kind
end

local waiting, delayed, answers, spots, seen = {}, {}, {}, {}, {}
for index, id in ipairs(ids) do
  if seen[id] or not is_of_type(index) then
    answers[index] = 0
  else
    local container = container_of(id, statuses[index], results[index], spots)
    if container == 'active' or locks[index] then
      answers[index] = -2
    elseif cron[index] or (container ~= 'waiting' and container ~= 'delayed') then
      answers[index] = -1
    else
      local its = container == 'waiting' and waiting or delayed
      its[#its + 1], answers[index] = id, 1
    end
  end
  seen[id] = true
end
if #waiting > 0 then remove_waiting(kind, waiting) end
over_items('ZREM', DELAYED, delayed)
over_items('ZREM', X .. 'delayed:' .. kind, delayed)
delete_keys(delayed)
return answers
