-- Creates, replaces or stops a cron job. KEYS[1] namespace; ARGV: type, `put`, id, data, next score; or `drop`, id.
-- Returns for `put` the next score, for `drop` 1 if there was one, else 0.
--@include remove
local kind, action, id = ARGV[1], ARGV[2], ARGV[3]
local running = redis.call('SISMEMBER', ACTIVE, id) == 1
local waiting = redis.call('ZSCORE', ORDER, id)
if action == 'put' then
  redis.call('SET', DATA .. id, ARGV[4])
  redis.call('ZADD', CRON, ARGV[5], id)
  local retrying = redis.call('ZSCORE', DELAYED, id)
  if not running and not waiting and not retrying then redis.call('SET', STATUS .. id, 'cron') end
  return ARGV[5]
end
if redis.call('ZREM', CRON, id) == 0 then return 0 end
redis.call('HDEL', X .. 'instances', id)
if waiting then
  remove_waiting(kind, { id })
elseif not running then
  redis.call('ZREM', DELAYED, id)
  redis.call('ZREM', X .. 'delayed:' .. kind, id)
  delete_keys({ id })
end
return 1
