-- Settles the outcomes of one worker's jobs, then claims the next ones. A batch shares every command that it can.
--
-- KEYS[1]  namespace, `<ns>:`
-- ARGV     number of jobs to claim, job type, server id, token and lease ms of the claims, stalls allowed,
--          worker's name, its rate limit: jobs and ms, or '' '', versions of the routes that it has (of the type, and
--          of the type on this server), number of routes, number of completed jobs, number of other outcomes, then
--   per route          `<signature>:<scope>`, most at once or '', most per minute or ''
--   per completed job  id, token, result, template
--   per other outcome  letter, id, token, then
--     F failed for good  data, result, template
--     B failed for good  result (the data can't be read, and stays as it is)
--     D next attempt, delayed  data, result, template, ms until then
--     R next attempt, at once  data, result, template, server, signature and definition of the route, 'f' for the front
--                        of the list
--     S snoozed          ms until then
--     P released         server, signature and definition of the route
--     U for others       (its data differs from the index: it is pushed without an entry and indexed again)
--          A template is the SHA-1 of the data of a job that repeats by cron, as it was claimed; '' for other jobs.
-- Returns  codes (0 done, 1 lost: nothing was changed for that job), claimed {id, data, ...}, ms until a limit may let
--          another one through, ms until the next job is due or -1, 1 if there is more of the list to be read, routes
--          {version, fields, version, fields} if the worker's are old, ms that a rate limit lasts, text of
--          `lib/look.lua`, the server's time in ms
--@include claim
--@include look
--@include finish

local now, wanted = server_now(), tonumber(ARGV[1])
local worker = { now = now, type = ARGV[2], server = ARGV[3], token = ARGV[4], lease = ARGV[5], max_stalled = ARGV[6],
  name = ARGV[7] }
local kind, at = worker.type, 15
local routes = {}
for number = 1, tonumber(ARGV[12]) do
  routes[number] = { key = X .. 'line:' .. ARGV[at], concurrent = ARGV[at + 1], per_minute = ARGV[at + 2], skipped = 0 }
  at = at + 3
end
redis.call('SET', HEARTBEAT .. worker.server, now, 'EX', 30)

local codes, completions, others = {}, tonumber(ARGV[13]), tonumber(ARGV[14])
if completions > 0 then
  complete_all(worker, at, completions, now, codes)
  at = at + completions * COMPLETION
end

local adopted = false
local function before_push()
  if not adopted then adopt_ends(now) end
  adopted = true
end

-- Returns true if the schedule was replaced during the run. It must keep its new data: the run has the old.
local function is_replaced(id, template)
  return template ~= '' and redis.sha1hex(redis.call('MGET', DATA .. id)[1] or '') ~= template
end

local WIDTH = { F = 3, D = 4, R = 7, S = 1, P = 3, U = 0, B = 1 }
for index = completions + 1, completions + others do
  local letter, id, token = ARGV[at], ARGV[at + 1], ARGV[at + 2]
  local a, b, c, d = ARGV[at + 3], ARGV[at + 4], ARGV[at + 5], ARGV[at + 6]
  if not end_claim(worker, id, token) then
    codes[index] = 1
  else
    codes[index] = 0
    if letter == 'S' then
      postpone(kind, id, now + a)
    elseif letter == 'B' then
      to_dead_letter(id, kind, a, now)
    elseif letter == 'U' then
      before_push()
      redis.call('SET', STATUS .. id, 'waiting')
      redis.call('LPUSH', WAITING, id)
      adopted = false
    elseif letter == 'P' then
      before_push()
      wait_again(id, given_route(kind, a, b, c), true)
      wake(kind)
    else
      local replaced = is_replaced(id, c)
      if not replaced then redis.call('SET', DATA .. id, a) end
      redis.call('SET', RESULT .. id, b, 'EX', DAY)
      redis.call('DEL', PROGRESS .. id)
      redis.call('HDEL', X .. 'stalls', id)
      if letter == 'D' then
        postpone(kind, id, now + d)
      elseif letter == 'R' and replaced then
        postpone(kind, id, now)
      elseif letter == 'R' then
        before_push()
        wait_again(id, given_route(kind, d, ARGV[at + 7], ARGV[at + 8]), ARGV[at + 9] == 'f')
        wake(kind)
      elseif c ~= '' and redis.call('ZSCORE', CRON, id) then
        redis.call('SET', STATUS .. id, 'cron')
      else
        to_dead_letter(id, kind, b, now)
      end
    end
  end
  at = at + 3 + WIDTH[letter]
end

local reply, held, due, more, update, limited = {}, 0, -1, 0, {}, 0
if wanted == 0 then return { codes, reply, held, due, more, update, limited, '', now } end

make_due_ready(kind, now)
adopt_ends(now)
if adopt_step(now) then more = 1 end
local here, there = X .. 'routes:' .. scope_of(kind, ''), X .. 'routes:' .. scope_of(kind, worker.server)
local version, version_there = redis.call('HGET', here, 'v') or '0', redis.call('HGET', there, 'v') or '0'
if version ~= ARGV[10] or version_there ~= ARGV[11] then
  update = { version, redis.call('HGETALL', here), version_there, redis.call('HGETALL', there) }
end

local rate, window = tonumber(ARGV[8]), tonumber(ARGV[9])
if rate then
  local used = counted(X .. 'rate:' .. kind)
  if used >= rate then limited = window_left(X .. 'rate:' .. kind, window) end
  wanted = math.min(wanted, rate - used)
end
if limited == 0 then
  local jobs
  jobs, held = claim(worker, routes, wanted)
  if #jobs > 0 then
    reply = store_claims(worker, jobs, now)
    if rate then count_window(X .. 'rate:' .. kind, #jobs, window) end
  end
  if #jobs < wanted then
    local next_due = redis.call('ZRANGE', X .. 'delayed:' .. kind, 0, 0, 'WITHSCORES')
    if next_due[2] then due = math.min(math.max(0, next_due[2] - now), DAY * 1000) end
  end
end
-- A worker that got all the jobs it wanted claims again before it waits, so it does not need the text.
local look = #reply / 2 < tonumber(ARGV[1]) and look_of(kind) or ''
return { codes, reply, held, due, more, update, limited, look, now }
