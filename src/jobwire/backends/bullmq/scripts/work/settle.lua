-- Settles the outcomes of one worker's jobs, then claims the next ones. This is the hot path of the whole protocol, so
-- a batch shares every command that it can. A batch of one leaves the store as BullMQ does.
--
-- KEYS[1]  base of the queue, `<prefix>:<queue>:`
-- ARGV     now ms, or T for an early claim, which the server runs when a wait ends, which uses the server's time and
--          can be undone without a trace; number of jobs to claim, token and lease ms of these, worker's name or '',
--          worker's rate limit: jobs and ms, or '' '', minutes of metrics or '',
--          number of completed jobs, number of other outcomes, then
--   completed jobs, in groups: number of jobs, what they share (token, jobs to keep, seconds to keep, attempts made
--     with this one, unique key or ''), then id and value of each
--   per other outcome  letter, id, token, then
--     F failed for good  reason, stacks JSON, allowed attempts, jobs to keep, seconds to keep
--     D next attempt, delayed   reason, stacks JSON, delay ms
--     R next attempt, at once   reason, stacks JSON, 'l' for last in first out or ''
--     S snoozed          delay ms
--     P released
--     U early claim undone      its score or '', id of its event, and what processedOn, ats and pb were or ''
--     L throttled        ms for which workers with a rate limit, and this one, must not start a job
--     W parked until its children have finished
-- Returns  codes (0 done; -1 -2 -3 -4 -6 -9 refused, and then nothing was changed for that job), claimed jobs as
--          {id, fields, id, fields, ...}, ms that a rate limit lasts, ms of the next due job or 0, discarded ids;
--          for an early claim also now ms, and {score or '', id of the event, ...} of the claimed jobs
--@include claim

-- Most calls complete plain jobs and claim the next. The other functions are defined only when they are needed: the
-- server defines functions again at every call, and all of them would take a tenth of the time of such a call.
local rarely_used
local function rare()
  if not rarely_used then
--@include finish
--@include put_back
--@include park
--@include metrics
    rarely_used = {
      child_completed = child_completed, give_back_unique = give_back_unique, delete_job_keys = delete_job_keys,
      prune = prune, end_claim = end_claim, fail = fail, charge_attempt = charge_attempt, postpone = postpone,
      wait_again = wait_again, release = release, undo_claim = undo_claim, park = park, throttle = throttle, count_finished = count_finished,
    }
  end
  return rarely_used
end
--@include complete

local base, now, wanted = KEYS[1], ARGV[1], tonumber(ARGV[2])
local early = now == 'T'
if early then
  local time = redis.call('TIME')
  now = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
end
local worker = { early = early, token = ARGV[3], lease = ARGV[4], name = ARGV[5], rate = ARGV[6], window = ARGV[7] }
local minutes, completions, others = ARGV[8], tonumber(ARGV[9]), tonumber(ARGV[10])
local stored = redis.call('HMGET', base .. 'meta', 'paused', 'concurrency', 'max', 'duration', 'opts.maxLenEvents')
local meta = { paused = stored[1], concurrency = stored[2], max = stored[3], duration = stored[4] }
local codes, completed, failed = {}, 0, 0
local at = 11

if completions > 0 then
  completed, at = complete_all(base, at, completions, now, codes)
end

local promoted, throttled, other = false, 0, others > 0 and rare() or nil
for index = completions + 1, completions + others do
  local letter, id, token = ARGV[at], ARGV[at + 1], ARGV[at + 2]
  local job, code = base .. id, nil
  at = at + 3
  if letter == 'F' then
    code = other.fail(base, { id = id, token = token, reason = ARGV[at], stack = ARGV[at + 1], attempts = ARGV[at + 2],
      count = ARGV[at + 3], age = ARGV[at + 4] }, now)
    at = at + 5
    if code == 0 then failed = failed + 1 end
  elseif letter == 'D' then
    code = other.end_claim(base, id, token)
    if code == 0 then
      redis.call('HSET', job, 'failedReason', ARGV[at], 'stacktrace', ARGV[at + 1])
      other.charge_attempt(job)
      other.postpone(base, id, ARGV[at + 2], now)
    end
    at = at + 3
  elseif letter == 'R' then
    if not promoted then
      local target, blocked = gate_of(base, meta.paused, meta.concurrency)
      make_due_ready(base, target, blocked, now)
      promoted = true
    end
    code = other.end_claim(base, id, token)
    if code == 0 then
      redis.call('HSET', job, 'failedReason', ARGV[at], 'stacktrace', ARGV[at + 1])
      other.charge_attempt(job)
      other.wait_again(base, id, ARGV[at + 2] == 'l' and 'RPUSH' or 'LPUSH')
    end
    at = at + 3
  elseif letter == 'S' then
    code = other.end_claim(base, id, token)
    if code == 0 then other.postpone(base, id, ARGV[at], now) end
    at = at + 1
  elseif letter == 'W' then
    code = other.park(base, id, token, now)
  elseif letter == 'L' then
    throttled = other.throttle(base, ARGV[at])
    code = other.end_claim(base, id, token)
    if code == 0 then other.release(base, id) end
    at = at + 1
  elseif letter == 'U' then
    code = other.end_claim(base, id, token)
    if code == 0 then
      other.undo_claim(base, id, ARGV[at], ARGV[at + 1],
        { processedOn = ARGV[at + 2], ats = ARGV[at + 3], pb = ARGV[at + 4] })
    end
    at = at + 5
  else
    code = other.end_claim(base, id, token)
    if code == 0 then other.release(base, id) end
  end
  codes[index] = code
end

if minutes ~= '' then
  if completed > 0 then pcall(rare().count_finished, base, 'completed', completed, now, minutes) end
  if failed > 0 then pcall(rare().count_finished, base, 'failed', failed, now, minutes) end
end
if completions + others > 0 then
  redis.call('XTRIM', base .. 'events', 'MAXLEN', '~', event_limit(base, stored[5]))
end

local jobs, limited, due, not_jobs, idle, traces = {}, 0, 0, {}, true, nil
if throttled > 0 then
  limited, idle = throttled, false
elseif wanted > 0 then
  jobs, limited, due, not_jobs, idle, traces = claim(base, wanted, now, meta, worker)
end
if idle and completed + failed > 0 and redis.call('EXISTS', base .. 'wait', base .. 'active', base .. 'prioritized') == 0 then
  redis.call('XADD', base .. 'events', '*', 'event', 'drained')
end
if early then return { codes, jobs, limited, due, not_jobs, now, traces } end
return { codes, jobs, limited, due, not_jobs }
