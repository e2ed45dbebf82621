-- Corrects and deletes stale data, for the leader. KEYS[1] namespace; ARGV: scheduler id, ms after which a worker
-- without heartbeat is removed.
--   running   records of running jobs are compared with the running set one by one, not only by their number
--   counters  a type's counter that differs from the number of its running jobs at two checks is corrected
--   workers   those without a heartbeat for that long are removed
--   routes    those without jobs are deleted
-- Returns {counters corrected, workers removed, routes deleted}, or {-1} if the caller does not lead.
--@include leader
--@include peers
if not leads() then return { -1 } end
local now, counters, workers, forgotten = tonumber(server_now()), 0, 0, 0

local types = redis.call('SMEMBERS', X .. 'types')
update_records(types, now)
for _, kind in ipairs(types) do
  local counted = tonumber(redis.call('MGET', CONCURRENT .. kind)[1] or 0) or -1
  local running = redis.call('HLEN', claims_of(kind))
  if counted == running or kind == '' then
    redis.call('HDEL', X .. 'drift', kind)
  elseif redis.call('HGET', X .. 'drift', kind) == counted .. '/' .. running then
    redis.call('SET', CONCURRENT .. kind, running)
    redis.call('HDEL', X .. 'drift', kind)
    counters = counters + 1
  else
    redis.call('HSET', X .. 'drift', kind, counted .. '/' .. running)
  end
  local servers = redis.call('SMEMBERS', X .. 'servers:' .. kind)
  servers[#servers + 1] = ''
  for _, server in ipairs(servers) do
    local scope = scope_of(kind, server)
    local routes, kept, dropped = X .. 'routes:' .. scope, 0, 0
    for _, sig in ipairs(redis.call('HKEYS', routes)) do
      if sig ~= 'v' then
        if sig ~= PLAIN and redis.call('EXISTS', route_key({ sig = sig, scope = scope })) == 0 then
          redis.call('HDEL', routes, sig)
          dropped = dropped + 1
        else
          kept = kept + 1
        end
      end
    end
    if dropped > 0 then redis.call('HSET', routes, 'v', redis.call('HINCRBY', SEQUENCE, 'routes', 1)) end
    if kept == 0 and server ~= '' then
      redis.call('DEL', routes)
      redis.call('SREM', X .. 'servers:' .. kind, server)
    end
    forgotten = forgotten + dropped
  end
end

-- Peers have inserted jobs in the middle, or some were missed: read the whole list.
if redis.call('ZCARD', ORDER) < redis.call('LLEN', WAITING) and redis.call('EXISTS', READ_THROUGH) == 0 then
  redis.call('HSET', READ_THROUGH, 'at', 0, 'score', '')
end

for _, server in ipairs(redis.call('SMEMBERS', base .. 'workers:active')) do
  if redis.call('EXISTS', HEARTBEAT .. server) == 0 then
    local fine, about = pcall(cjson.decode, redis.call('MGET', base .. 'workers:' .. server)[1] or '')
    local seen = fine and type(about) == 'table' and tonumber(about.lastSeen) or 0
    if now - seen > tonumber(ARGV[2]) then
      redis.call('SREM', base .. 'workers:active', server)
      redis.call('DEL', base .. 'workers:' .. server)
      for _, kind in ipairs(types) do redis.call('HDEL', X .. 'handlers:' .. kind, server) end
      workers = workers + 1
    end
  end
end
return { counters, workers, forgotten }
