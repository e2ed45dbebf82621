-- One worker's turn: report how jobs went, then claim the next ones. A batch shares every command that it can.
--
-- KEYS[1]  namespace, `<ns>:`
-- ARGV     now ms, number of jobs to claim, job type, server id, token and lease ms of the claims, stalls allowed,
--          worker's name, its rate limit: jobs and ms, or '' '', versions of the routes that it knows (of the type, and
--          of the type on this server), number of routes, number of completed jobs, number of other outcomes, then
--   per route          `<signature>:<scope>`, most at once or '', most per minute or ''
--   per completed job  id, token, result, 'c' if it repeats by cron
--   per other outcome  letter, id, token, then
--     F failed for good  data, result, 'c' if it repeats by cron
--     B failed for good  result (the data can't be read, and stays as it is)
--     D try again later  data, result, due ms
--     R try again now    data, result, server, signature, words of the route, 'f' for the front of the list
--     S put off          due ms
--     P handed back      server, signature, words of the route
--     U not ours to run  (its data is not what the index says: it is pushed without a note, and noted anew)
-- Returns  codes (0 done, 1 lost: nothing was changed for that job), claimed {id, data, ...}, ms until a limit may let
--          another one through, ms of the next due job or 0, 1 if there is more of the list to be read, routes
--          {version, fields, version, fields} if the worker's are old, ms that a rate limit lasts, how the queue looks
--@include claim
--@include look
--@include finish

local now, wanted = ARGV[1], tonumber(ARGV[2])
local worker = { now = now, type = ARGV[3], server = ARGV[4], token = ARGV[5], lease = ARGV[6], max_stalled = ARGV[7],
  name = ARGV[8] }
local kind, at = worker.type, 16
local routes = {}
for number = 1, tonumber(ARGV[13]) do
  routes[number] = { key = X .. 'line:' .. ARGV[at], concurrent = ARGV[at + 1], per_minute = ARGV[at + 2], skipped = 0 }
  at = at + 3
end
redis.call('SET', HEARTBEAT .. worker.server, now, 'EX', 30)

local codes, completions, others = {}, tonumber(ARGV[14]), tonumber(ARGV[15])
if completions > 0 then
  complete_all(worker, at, completions, now, codes)
  at = at + completions * COMPLETION
end

local adopted = false
local function before_push()
  if not adopted then adopt_ends(now) end
  adopted = true
end

local WIDTH = { F = 3, D = 3, R = 6, S = 1, P = 3, U = 0, B = 1 }
for index = completions + 1, completions + others do
  local letter, id, token = ARGV[at], ARGV[at + 1], ARGV[at + 2]
  local a, b, c, d, e = ARGV[at + 3], ARGV[at + 4], ARGV[at + 5], ARGV[at + 6], ARGV[at + 7]
  if not let_go(worker, id, token) then
    codes[index] = 1
  else
    codes[index] = 0
    if letter == 'S' then
      postpone(kind, id, a)
    elseif letter == 'B' then
      bury(id, kind, a, now)
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
      redis.call('SET', DATA .. id, a)
      redis.call('SET', RESULT .. id, b, 'EX', DAY)
      redis.call('DEL', PROGRESS .. id)
      redis.call('HDEL', X .. 'stalls', id)
      if letter == 'D' then
        postpone(kind, id, c)
      elseif letter == 'R' then
        before_push()
        wait_again(id, given_route(kind, c, d, e), ARGV[at + 8] == 'f')
        wake(kind)
      elseif c == 'c' and redis.call('ZSCORE', CRON, id) then
        redis.call('SET', STATUS .. id, 'cron')
      else
        bury(id, kind, b, now)
      end
    end
  end
  at = at + 3 + WIDTH[letter]
end

local reply, held, due, more, update, limited = {}, 0, 0, 0, {}, 0
if wanted == 0 then return { codes, reply, held, due, more, update, limited, '' } end

promote_type(kind, now)
adopt_ends(now)
if adopt_step(now) then more = 1 end
local here, there = X .. 'routes:' .. scope_of(kind, ''), X .. 'routes:' .. scope_of(kind, worker.server)
local version, version_there = redis.call('HGET', here, 'v') or '0', redis.call('HGET', there, 'v') or '0'
if version ~= ARGV[11] or version_there ~= ARGV[12] then
  update = { version, redis.call('HGETALL', here), version_there, redis.call('HGETALL', there) }
end

local rate, window = tonumber(ARGV[9]), tonumber(ARGV[10])
if rate then
  local used = tonumber(redis.call('GET', X .. 'rate:' .. kind) or 0)
  if used >= rate then
    local left = redis.call('PTTL', X .. 'rate:' .. kind)
    -- A count without a time to live would last for ever.
    if left == -1 then redis.call('PEXPIRE', X .. 'rate:' .. kind, window) end
    limited = math.max(1, left == -1 and window or left)
  end
  wanted = math.min(wanted, rate - used)
end
if limited == 0 then
  local jobs
  jobs, held = claim(worker, routes, wanted)
  if #jobs > 0 then
    reply = hold(worker, jobs, now)
    if rate and redis.call('INCRBY', X .. 'rate:' .. kind, #jobs) == #jobs then
      redis.call('PEXPIRE', X .. 'rate:' .. kind, window)
    end
  end
  if #jobs < wanted then
    local next_due = redis.call('ZRANGE', X .. 'delayed:' .. kind, 0, 0, 'WITHSCORES')
    due = next_due[2] or 0
  end
end
-- Who got all that was wanted will ask again before waiting for a change.
local look = #reply / 2 < tonumber(ARGV[2]) and look_of(kind) or ''
return { codes, reply, held, due, more, update, limited, look }
