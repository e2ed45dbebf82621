-- Completes many jobs at once. Functions that only some of them need come from rare(), of the script that includes
-- this.
--@include active
--@include chunks
--@include get_all

-- Completed jobs come in groups from ARGV at `at`. A group is the number of its jobs, the values that they share, which
-- are at these distances from the number, then id and value of each job.
local TOKEN, KEEP_COUNT, KEEP_AGE, ATTEMPTS, UNIQUE, FIRST_JOB = 1, 2, 3, 4, 5, 6

-- Returns the ids, the values and, for each job, the index of its group; and the index after the last job.
local function read_completions(at, number)
  local ids, values, groups = {}, {}, {}
  local read = 0
  while read < number do
    local group = at
    at = at + FIRST_JOB
    for _ = 1, ARGV[group] do
      read = read + 1
      ids[read], values[read], groups[read] = ARGV[at], ARGV[at + 1], group
      at = at + 2
    end
  end
  return ids, values, groups, at
end

-- Fills in a code per job: 0 if it may be completed. Returns the ids of the jobs with 0, and the hashes and
-- locks of all.
local function check_completions(base, ids, groups, codes)
  local number = #ids
  local hashes, locks, children = {}, {}, {}
  for index = 1, number do
    local job = base .. ids[index]
    hashes[index], locks[index] = job, job .. ':lock'
    children[2 * index - 1], children[2 * index] = job .. ':dependencies', job .. ':unsuccessful'
  end
  local all_there = over_keys('EXISTS', hashes) == number
  local no_children = over_keys('EXISTS', children) == 0
  local held = get_all(locks)
  local right, seen = {}, {}
  for index = 1, number do
    local id, code = ids[index], 0
    if not all_there and redis.call('EXISTS', hashes[index]) == 0 then
      code = -1
    elseif held[index] ~= ARGV[groups[index] + TOKEN] or seen[id] then
      code = held[index] and not seen[id] and -6 or -2
    elseif not no_children and redis.call('EXISTS', children[2 * index - 1]) == 1 then
      code = -4
    elseif not no_children and redis.call('EXISTS', children[2 * index]) == 1 then
      code = -9
    else
      seen[id] = true
      right[#right + 1] = id
    end
    codes[index] = code
  end
  return right, hashes, locks
end

-- Adds jobs that share a rule of keeping to `completed`, then applies the rule once.
local function keep_completed(base, count, age, scores, dropped, now)
  over_items('ZADD', base .. 'completed', scores)
  if #dropped > 0 then rare().delete_job_keys(base, dropped) end
  if #scores > 0 and (count ~= '' or age ~= '') then rare().prune(base, base .. 'completed', count, age, now) end
end

-- Completes jobs. Fills in `codes` and returns the number of completed jobs, and the index after them.
local function complete_all(base, at, number, now, codes)
  local all, values, groups, after = read_completions(at, number)
  local ids, hashes, locks = check_completions(base, all, groups, codes)
  if #ids == 0 then return 0, after end
  local taken, found = take_active(base, ids)
  if found < number then
    ids, locks = {}, {}
    for index = 1, number do
      local id = all[index]
      if codes[index] == 0 and not taken[id] then
        codes[index] = -3
      elseif codes[index] == 0 then
        ids[#ids + 1] = id
        locks[#locks + 1] = hashes[index] .. ':lock'
      end
    end
    if #ids == 0 then return 0, after end
  end
  over_keys('DEL', locks)
  over_items('SREM', base .. 'stalled', ids)
  local events, scores, dropped = base .. 'events', {}, {}
  local count, age
  for index = 1, number do
    if codes[index] == 0 then
      local id, value, job, group = all[index], values[index], hashes[index], groups[index]
      local unique = ARGV[group + UNIQUE]
      if ARGV[group + KEEP_COUNT] ~= count or ARGV[group + KEEP_AGE] ~= age then
        if count then keep_completed(base, count, age, scores, dropped, now) end
        scores, dropped, count, age = {}, {}, ARGV[group + KEEP_COUNT], ARGV[group + KEEP_AGE]
      end
      -- A unique key or a parent of a wrong type must not keep this job or those behind it from being completed.
      if unique ~= '' then pcall(rare().give_back_unique, base, unique, id, now) end
      -- Read now and not at the claim: a job can get or lose its parent while it runs.
      local parent_key = redis.pcall('HGET', job, 'parentKey')
      if type(parent_key) == 'string' then
        pcall(rare().child_completed, parent_key, redis.call('HGET', job, 'parent'), job, value, now)
      end
      if count == '0' then
        dropped[#dropped + 1] = id
      else
        redis.pcall('HSET', job, 'returnvalue', value, 'finishedOn', now, 'atm', ARGV[group + ATTEMPTS])
        local n = #scores
        scores[n + 1], scores[n + 2] = now, id
      end
      redis.call('XADD', events, '*', 'event', 'completed', 'jobId', id, 'returnvalue', value, 'prev', 'active')
    end
  end
  keep_completed(base, count, age, scores, dropped, now)
  return #ids, after
end
