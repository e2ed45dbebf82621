-- Claims jobs. Jobs that are due become ready, then the limits are checked. The waiting list goes before priorities.
--@include gate
--@include marker
--@include due

-- Returns how many of `wanted` jobs the queue's limits allow now, and how long a full rate limit lasts (ms).
-- A full limiter in its last millisecond, one without a time to live and one that is not a count have no window left to
-- wait for: the next window begins with this claim, which gets the limit and no more (at least one job, as in BullMQ).
-- An early claim gets nothing under a limit that counts starts, because a start can't be undone.
local function allowance(base, wanted, meta, worker)
  local limit = tonumber(meta.max or '') or tonumber(worker.rate)
  if limit and worker.early then return 0, 0 end
  if limit then
    local stored = redis.pcall('GET', base .. 'limiter') or '0'
    local used = type(stored) == 'string' and stored:find('^-?%d+$') and tonumber(stored)
    if not used or used >= limit then
      local left = used and redis.call('PTTL', base .. 'limiter') or 0
      if left > 0 then return 0, left end
      redis.call('DEL', base .. 'limiter')
      used, limit = 0, math.max(1, limit)
    end
    wanted = math.min(wanted, limit - used)
  end
  local concurrency = tonumber(meta.concurrency or '')
  if concurrency then wanted = math.min(wanted, concurrency - redis.call('LLEN', base .. 'active')) end
  return math.ceil(wanted), 0
end

local byte, ZERO, COLON = string.byte, 48, 58

-- Returns the next ids to run, in order, and the scores of those that had one. Entries that start with `0:` are markers
-- of BullMQ 4, not jobs.
local function take_ids(base, wanted)
  local ids, scores = {}, {}
  while #ids < wanted do
    local taken = redis.call('RPOP', base .. 'wait', wanted - #ids)
    if not taken then break end
    local n = #ids
    for index = 1, #taken do
      local id = taken[index]
      if byte(id) ~= ZERO or byte(id, 2) ~= COLON then
        n = n + 1
        ids[n] = id
      end
    end
  end
  if #ids < wanted then
    local taken = redis.call('ZPOPMIN', base .. 'prioritized', wanted - #ids)
    for index = 1, #taken, 2 do
      ids[#ids + 1] = taken[index]
      scores[#ids] = taken[index + 1]
    end
    if #ids < wanted then redis.call('DEL', base .. 'pc') end
  end
  return ids, scores
end

-- Claims up to `wanted` jobs. Returns six values: the jobs as {id, fields before this claim, id, ...}, the ms that a
-- rate limit lasts, the ms of the next due job (0: none known), the ids that were discarded, true if the queue was
-- empty and not blocked, and what undoing an early claim needs: per job its score or '', and the id of its event.
-- An entry whose key is not a hash can't be run by any worker, and must not stop those behind it: it is discarded.
local function claim(base, wanted, now, meta, worker)
  local target, blocked = gate_of(base, meta.paused, meta.concurrency)
  make_due_ready(base, target, blocked, now)
  local allowed, limited = allowance(base, wanted, meta, worker)
  if limited > 0 or blocked then return {}, limited, 0, {}, false, {} end
  local jobs, ids, not_jobs, traces = {}, {}, {}, {}
  local events, named, token, lease = base .. 'events', worker.name ~= '', worker.token, worker.lease
  local taken, scores = take_ids(base, allowed)
  local call, try, n = redis.call, redis.pcall, 0
  for position = 1, #taken do
    local id = taken[position]
    local job = base .. id
    local fields = try('HGETALL', job)
    if fields.err then
      not_jobs[#not_jobs + 1] = id
    else
      local starts = 1
      for index = 1, #fields, 2 do
        if fields[index] == 'ats' then
          starts = (tonumber(fields[index + 1]) or 0) + 1
          break
        end
      end
      if named then
        call('HSET', job, 'processedOn', now, 'ats', starts, 'pb', worker.name)
      else
        call('HSET', job, 'processedOn', now, 'ats', starts)
      end
      call('SET', job .. ':lock', token, 'PX', lease)
      local event = call('XADD', events, '*', 'event', 'active', 'jobId', id, 'prev', 'waiting')
      if worker.early then
        traces[#traces + 1] = scores[position] or ''
        traces[#traces + 1] = event
      end
      n = n + 1
      ids[n] = id
      jobs[2 * n - 1], jobs[2 * n] = id, fields
    end
  end
  over_items('LPUSH', base .. 'active', ids)
  if #ids > 0 or #not_jobs > 0 then mark_ready(base) end
  local rated = tonumber(meta.max or '') or tonumber(worker.rate)
  if rated and #ids > 0 and redis.call('INCRBY', base .. 'limiter', #ids) == #ids then
    local window = tonumber(worker.window) or tonumber(meta.duration or '')
    -- A duration of NaN must not stop this: the jobs are in `active` already.
    if window then redis.pcall('PEXPIRE', base .. 'limiter', window) end
  end
  local due = #ids < wanted and next_due(base) or 0
  return jobs, 0, math.floor(due), not_jobs, #ids == 0 and due == 0, traces
end
