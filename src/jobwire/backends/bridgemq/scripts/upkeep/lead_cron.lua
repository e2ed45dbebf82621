-- Pushes due cron jobs, for the leader. KEYS[1] namespace; ARGV: scheduler id, then per job: id, the score it was due
-- at, the next score ('' if it has none: the job goes to the dead letter list, with the reason instead of the
-- instance's data), id of its instance or '' to push the job itself, data of the instance, 's' to skip a tick while an
-- earlier instance has not finished. The score is compared first, so a tick happens once even if several schedulers try
-- it, and a peer that has pushed the job but not set the next score yet does no harm. Returns per job 1 pushed, 0
-- skipped, 2 not due any more; -1 alone if the caller does not lead.
--@include leader
if not leads() then return { -1 } end
local now, answers, pushed = server_now(), {}, false
adopt_ends(now)

local function is_under_way(id)
  return redis.call('SISMEMBER', ACTIVE, id) == 1 or redis.call('ZSCORE', ORDER, id)
    or redis.call('ZSCORE', DELAYED, id)
end

local function push(id, data)
  local route, problem = route_of(data, id)
  if route then
    wait_again(id, route, route.front)
    pushed = true
  else
    poison(id, problem, now)
  end
end

for at = 2, #ARGV, 6 do
  local id, old, next_score, instance, text = ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3], ARGV[at + 4]
  local data, answer = redis.call('MGET', DATA .. id)[1], 0
  if tonumber(redis.call('ZSCORE', CRON, id) or -1) ~= tonumber(old) then
    answer = 2
  elseif not data then
    redis.call('ZREM', CRON, id)
    local _, problem = route_of(data, id)
    if problem then poison(id, problem, now) end
  elseif next_score == '' then
    redis.call('ZREM', CRON, id)
    local route = route_of(data, id)
    set_aside(id, route and route.type or '', 'BadSchedule', text, now)
  else
    redis.call('ZADD', CRON, next_score, id)
    if instance == '' then
      if not is_under_way(id) then
        push(id, data)
        answer = 1
      end
    else
      local previous = redis.call('HGET', X .. 'instances', id)
      local skip = ARGV[at + 5] == 's' and previous and is_under_way(previous)
      if not skip and redis.call('SET', DATA .. instance, text, 'NX') then
        redis.call('HSET', X .. 'instances', id, instance)
        push(instance, text)
        answer = 1
      end
    end
  end
  answers[#answers + 1] = answer
end
if pushed then redis.call('PUBLISH', X .. 'wake', '*') end
return answers
