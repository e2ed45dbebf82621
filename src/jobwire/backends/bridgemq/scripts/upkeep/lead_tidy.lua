-- The leader's housekeeping. KEYS[1] namespace; ARGV: scheduler id, ms after which a silent worker is forgotten.
--   running   records of running jobs are compared with the running set one by one, not only by their number
--   counters  a type's counter that differs from the number of its running jobs at two looks is set right
--   workers   those without a sign of life for that long are struck off
--   routes    those without jobs are forgotten
-- Returns {counters set, workers struck off, routes forgotten}, or {-1} if the caller does not lead.
--@include leader
--@include foreign
if not leads() then return { -1 } end
local now, counters, workers, forgotten = tonumber(server_now()), 0, 0, 0

local types = redis.call('SMEMBERS', X .. 'types')
follow_running(types, now)
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
        if sig ~= PLAIN and redis.call('EXISTS', line_of({ sig = sig, scope = scope })) == 0 then
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

-- Jobs that peers pushed into the midst, or that were missed: read the list through.
if redis.call('ZCARD', ORDER) < redis.call('LLEN', WAITING) and redis.call('EXISTS', HEAL) == 0 then
  redis.call('HSET', HEAL, 'at', 0, 'score', '')
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
