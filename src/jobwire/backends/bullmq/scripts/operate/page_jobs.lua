-- Reads a page of the jobs in some containers, one container after the other.
-- KEYS[1] base of the queue; ARGV[1] how many; ARGV[2] how many entries to skip (first page only); ARGV[3..5] where the
-- last page ended: container, score, id (container "" for the first page); ARGV[6..] pairs of a container and its
-- order: `list` from the end that runs first, `list backward` from the other one, `up` or `down` by score.
-- Returns container, id, score and flat hash of each job, one after another. In a list the score is "", or backward the
-- number of entries between the job and the end that runs first.
-- The page continues after the job that the last one ended with. If that job has left, it continues after the jobs of
-- lower score (down: higher). In a list it then starts at the end that runs first, since that is where the others have
-- moved. Backward, it then starts so that as many entries are left as there were before the job. So a job that stays in
-- its container is never skipped, but it may be seen twice. One exception, backward: if an operator removed the job of
-- the cursor and jobs were added at the end that runs first meanwhile, as many of those that stay are skipped as were
-- added.
-- A pause moves the list `wait` to `paused`, and a resume moves it back: the page continues in the list that the jobs are
-- in now.

--@include read_job

local base, wanted, skip = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2])
local after = { container = ARGV[3], score = ARGV[4], id = ARGV[5] }

local function start_in_list(key)
  local position = redis.call('LPOS', key, after.id, 'RANK', -1)
  return position and redis.call('LLEN', key) - position or 0
end

local function start_backward(key, length)
  local position = redis.call('LPOS', key, after.id)
  if position then return position + 1 end
  return math.max(length - (tonumber(after.score) or length), 0)
end

local function start_in_set(key, order)
  if redis.call('ZSCORE', key, after.id) == after.score then
    return redis.call(order == 'up' and 'ZRANK' or 'ZREVRANK', key, after.id) + 1
  end
  if order == 'up' then return redis.call('ZCOUNT', key, '-inf', '(' .. after.score) end
  return redis.call('ZCOUNT', key, '(' .. after.score, '+inf')
end

-- Searches a list from the end where reading began: a page is usually near it, and the list may have a million entries.
local function is_in(container, id)
  local rank = -1
  for i = 6, #ARGV, 2 do
    if ARGV[i] == container and ARGV[i + 1] == 'list backward' then rank = 1 end
  end
  return redis.call('LPOS', base .. container, id, 'RANK', rank)
end

local moved_to = ({ wait = 'paused', paused = 'wait' })[after.container]
if moved_to and not is_in(after.container, after.id) then
  local moved = is_in(moved_to, after.id) or redis.call('EXISTS', base .. after.container) == 0
  if moved then after.container = moved_to end
end

local found = {}
local function add(container, id, score)
  found[#found + 1] = container
  found[#found + 1] = id
  found[#found + 1] = score
  found[#found + 1] = all_fields_of(base .. id)
end

-- Returns how many of the entries to skip are in this container.
local function skipped_in(key, order)
  if skip == 0 then return 0 end
  local here = math.min(skip, redis.call((order == 'up' or order == 'down') and 'ZCARD' or 'LLEN', key))
  skip = skip - here
  return here
end

local begun = after.container == ''
for i = 6, #ARGV, 2 do
  local container, order = ARGV[i], ARGV[i + 1]
  local key = base .. container
  local left = wanted - #found / 4
  local continued = container == after.container
  begun = begun or continued
  if begun and left > 0 then
    if order == 'list' then
      local start = continued and start_in_list(key) or skipped_in(key, order)
      local ids = redis.call('LRANGE', key, -(start + left), -(start + 1))
      for n = #ids, 1, -1 do add(container, ids[n], '') end
    elseif order == 'list backward' then
      local length = redis.call('LLEN', key)
      local start = continued and start_backward(key, length) or skipped_in(key, order)
      local ids = redis.call('LRANGE', key, start, start + left - 1)
      for n, id in ipairs(ids) do add(container, id, tostring(length - start - n)) end
    else
      local start = continued and start_in_set(key, order) or skipped_in(key, order)
      local read = order == 'up' and 'ZRANGE' or 'ZREVRANGE'
      local rows = redis.call(read, key, start, start + left - 1, 'WITHSCORES')
      for n = 1, #rows, 2 do add(container, rows[n], rows[n + 1]) end
    end
  end
end
return found
