-- Completes many jobs at once. Functions that only some of them need come from rare(), of the script that includes
-- this.
--@include active
--@include chunks
--@include get_all

-- Completed jobs come in groups from ARGV at `at`. A group is the number of its jobs, the values that they share, which
-- are at these distances from the number, then id and value of each job.
local TOKEN, KEEP_COUNT, KEEP_AGE, ATTEMPTS, UNIQUE, FIRST_JOB = 1, 2, 3, 4, 5, 6

-- Returns the groups, each with what its jobs share and the indexes of its first and last job, then the ids and values
-- of all jobs, and the index after the last one.
local function read_completions(at, number)
  local args, groups, ids, values, read = ARGV, {}, {}, {}, 0
  while read < number do
    local last = read + args[at]
    groups[#groups + 1] = { first = read + 1, last = last, token = args[at + TOKEN], count = args[at + KEEP_COUNT],
      age = args[at + KEEP_AGE], attempts = args[at + ATTEMPTS], unique = args[at + UNIQUE] }
    at = at + FIRST_JOB
    for index = read + 1, last do
      ids[index], values[index] = args[at], args[at + 1]
      at = at + 2
    end
    read = last
  end
  return groups, ids, values, at
end

-- Fills in a code per job: 0 if it may be completed. Returns the ids of the jobs with 0 as a set, their number, and the
-- hashes and locks of all.
local function check_completions(base, groups, ids, codes)
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
  local right, count = {}, 0
  for _, group in ipairs(groups) do
    local token = group.token
    for index = group.first, group.last do
      local id, code = ids[index], 0
      if not all_there and redis.call('EXISTS', hashes[index]) == 0 then
        code = -1
      elseif held[index] ~= token or right[id] then
        code = held[index] and not right[id] and -6 or -2
      elseif not no_children and redis.call('EXISTS', children[2 * index - 1]) == 1 then
        code = -4
      elseif not no_children and redis.call('EXISTS', children[2 * index]) == 1 then
        code = -9
      else
        right[id] = true
        count = count + 1
      end
      codes[index] = code
    end
  end
  return right, count, hashes, locks
end

-- Adds jobs that share a rule of keeping to `completed`, then applies the rule once.
local function keep_completed(base, count, age, scores, dropped, now)
  over_items('ZADD', base .. 'completed', scores)
  if #dropped > 0 then rare().delete_job_keys(base, dropped) end
  if #scores > 0 and (count ~= '' or age ~= '') then rare().prune(base, base .. 'completed', count, age, now) end
end

-- Completes jobs. Fills in `codes` and returns the number of completed jobs, and the index after them.
local function complete_all(base, at, number, now, codes)
  local groups, all, values, after = read_completions(at, number)
  local missing, right, hashes, locks = check_completions(base, groups, all, codes)
  if right == 0 then return 0, after end
  local ids, found = all, take_active(base, missing, right)
  if found < number then
    ids, locks = {}, {}
    for index = 1, number do
      local id = all[index]
      if codes[index] == 0 and missing[id] then
        codes[index] = -3
      elseif codes[index] == 0 then
        ids[#ids + 1] = id
        locks[#locks + 1] = hashes[index] .. ':lock'
      end
    end
    if found == 0 then return 0, after end
  end
  over_keys('DEL', locks)
  over_items('SREM', base .. 'stalled', ids)
  local call, try, events = redis.call, redis.pcall, base .. 'events'
  local scores, dropped, count, age = {}, {}, nil, nil
  for _, group in ipairs(groups) do
    local unique, attempts = group.unique, group.attempts
    if group.count ~= count or group.age ~= age then
      if count then keep_completed(base, count, age, scores, dropped, now) end
      scores, dropped, count, age = {}, {}, group.count, group.age
    end
    local n = #scores
    for index = group.first, group.last do
      if codes[index] == 0 then
        local id, value, job = all[index], values[index], hashes[index]
        -- A unique key or a parent of a wrong type must not keep this job or those behind it from being completed.
        if unique ~= '' then pcall(rare().give_back_unique, base, unique, id, now) end
        -- Read now and not at the claim: a job can get or lose its parent while it runs.
        local parent_key = try('HGET', job, 'parentKey')
        if type(parent_key) == 'string' then
          pcall(rare().child_completed, parent_key, call('HGET', job, 'parent'), job, value, now)
        end
        if count == '0' then
          dropped[#dropped + 1] = id
        else
          try('HSET', job, 'returnvalue', value, 'finishedOn', now, 'atm', attempts)
          scores[n + 1], scores[n + 2] = now, id
          n = n + 2
        end
        call('XADD', events, '*', 'event', 'completed', 'jobId', id, 'returnvalue', value, 'prev', 'active')
      end
    end
  end
  keep_completed(base, count, age, scores, dropped, now)
  return found, after
end
