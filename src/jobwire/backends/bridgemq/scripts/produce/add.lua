-- Adds jobs of one type, in order. KEYS[1] namespace; ARGV: type, number of jobs, then per job: id, 'i' if the id is
-- the caller's own (it may exist already), data, when it is due ('' at once, `+ms` from now, or a time in ms), 'f' for
-- the front of the list or '', server, signature and definition of its route. Returns the positions (from 1) of jobs
-- whose id exists already. These are not stored.
--@include finish
local now, kind, number = server_now(), ARGV[1], tonumber(ARGV[2])
local values, taken, seen = {}, {}, {}
local group, route, key, front, waiting, delayed = {}, nil, nil, nil, false, {}

-- Returns the time when the job is due, nil if it is due already.
local function due_at(text)
  if text == '' then return nil end
  if text:sub(1, 1) == '+' then return now + text:sub(2) end
  return tonumber(text) > tonumber(now) and text or nil
end

adopt_ends(now)
local function flush()
  if #group > 0 then enqueue(group, route, front) end
  group = {}
end

for index = 1, number do
  local at = 3 + (index - 1) * 8
  local id, due = ARGV[at], due_at(ARGV[at + 3])
  if ARGV[at + 1] == 'i' and (seen[id] or redis.call('EXISTS', DATA .. id) == 1) then
    taken[#taken + 1] = index
  else
    if ARGV[at + 1] == 'i' then seen[id] = true end
    local n = #values
    values[n + 1], values[n + 2] = DATA .. id, ARGV[at + 2]
    values[n + 3], values[n + 4] = STATUS .. id, due and 'delayed' or 'waiting'
    if due then
      delayed[#delayed + 1], delayed[#delayed + 2] = due, id
    else
      local scope = scope_of(kind, ARGV[at + 5])
      local its_key = ARGV[at + 4] .. ARGV[at + 6] .. scope
      if its_key ~= key then
        flush()
        route = given_route(kind, ARGV[at + 5], ARGV[at + 6], ARGV[at + 7])
        key, front = its_key, ARGV[at + 4] == 'f'
      end
      group[#group + 1] = id
    end
  end
end
-- Data first: any worker drops an id in the list that has no data.
over_keys('MSET', values)
flush()
if #delayed > 0 then
  over_items('ZADD', DELAYED, delayed)
  over_items('ZADD', X .. 'delayed:' .. kind, delayed)
  redis.call('SADD', X .. 'types', kind)
end
wake(kind)
return taken
