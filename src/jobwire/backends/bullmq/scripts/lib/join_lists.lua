-- Joins `wait` and `paused` to one list under the given name: the jobs of `paused` run first, then those of `wait`.
-- Moves the shorter of the two, so that the server is blocked for no longer than needed.

local function move_all(from, to, push, from_index, to_index, keep_from, keep_to)
  while true do
    local chunk = redis.call('LRANGE', from, from_index, to_index)
    if #chunk == 0 then return end
    redis.call('LTRIM', from, keep_from, keep_to)
    if push == 'LPUSH' then
      for i = 1, math.floor(#chunk / 2) do
        chunk[i], chunk[#chunk + 1 - i] = chunk[#chunk + 1 - i], chunk[i]
      end
    end
    redis.call(push, to, unpack(chunk))
  end
end

local function join_lists(base, name)
  local wait, paused = base .. 'wait', base .. 'paused'
  local waiting, held = redis.call('LLEN', wait), redis.call('LLEN', paused)
  local joined
  if waiting == 0 and held == 0 then return end
  if waiting <= held then
    move_all(wait, paused, 'LPUSH', -1000, -1, 0, -1001)
    joined = 'paused'
  else
    move_all(paused, wait, 'RPUSH', 0, 999, 1000, -1)
    joined = 'wait'
  end
  if joined ~= name then redis.call('RENAME', base .. joined, base .. name) end
end
