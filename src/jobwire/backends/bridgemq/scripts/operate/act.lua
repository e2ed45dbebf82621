-- Carries out an operator's action on single jobs. KEYS[1] namespace; ARGV: type, action, then
--   remove   ids
--   promote  ids
--   retry    per job: id, data as it was read, data for the new start, server, signature and definition of its route,
--            'f' or ''
-- Returns per job: 1 done, 0 not found, -1 wrong state, -2 locked.
--@include remove
local now, kind, action = server_now(), ARGV[1], ARGV[2]

local function is_running(id) return redis.call('SISMEMBER', ACTIVE, id) == 1 end

-- The list is checked as well as the index: a peer may have taken the job.
local function is_waiting(id) return redis.call('ZSCORE', ORDER, id) and is_in_list(id, {}) end

local function remove(id)
  if redis.call('EXISTS', DATA .. id) == 0 then return 0 end
  if is_running(id) or redis.call('EXISTS', LOCK .. id) == 1 then return -2 end
  if redis.call('ZSCORE', CRON, id) then return -1 end
  if is_waiting(id) or redis.call('MGET', STATUS .. id)[1] == 'waiting' then
    remove_waiting(kind, { id })
    return 1
  end
  redis.call('ZREM', DELAYED, id)
  redis.call('ZREM', X .. 'delayed:' .. kind, id)
  redis.call('ZREM', X .. 'completed:' .. kind, id)
  if redis.call('ZREM', X .. 'dead:' .. kind, id) == 1 or redis.call('MGET', STATUS .. id)[1] == 'dead' then
    redis.call('LREM', DEADLETTER, 1, id)
  end
  delete_keys({ id })
  return 1
end

local function promote(id)
  if redis.call('EXISTS', DATA .. id) == 0 then return 0 end
  if not redis.call('ZSCORE', DELAYED, id) then return -1 end
  adopt_ends(now)
  return move_due({ id }, now) == 1 and 1 or -1
end

local function retry(at)
  local id = ARGV[at]
  local data = redis.call('MGET', DATA .. id)[1]
  if not data then return 0 end
  local status = redis.call('MGET', STATUS .. id)[1]
  if is_running(id) or is_waiting(id) or redis.call('ZSCORE', DELAYED, id) then return -1 end
  if (status ~= 'completed' and status ~= 'dead' and status ~= 'failed') or data ~= ARGV[at + 1] then return -1 end
  if status == 'dead' then redis.call('LREM', DEADLETTER, 1, id) end
  redis.call('ZREM', X .. 'dead:' .. kind, id)
  redis.call('ZREM', X .. 'completed:' .. kind, id)
  redis.call('SET', DATA .. id, ARGV[at + 2])
  redis.call('DEL', RESULT .. id, PROGRESS .. id)
  redis.call('PERSIST', LOGS .. id)
  adopt_ends(now)
  wait_again(id, given_route(kind, ARGV[at + 3], ARGV[at + 4], ARGV[at + 5]), ARGV[at + 6] == 'f')
  return 1
end

local answers = {}
if action == 'retry' then
  for at = 3, #ARGV, 7 do answers[#answers + 1] = retry(at) end
else
  local one = action == 'remove' and remove or promote
  for index = 3, #ARGV do answers[#answers + 1] = one(ARGV[index]) end
end
if action ~= 'remove' then wake(kind) end
return answers
