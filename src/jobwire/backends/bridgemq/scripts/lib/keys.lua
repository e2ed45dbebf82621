-- The keys. KEYS[1] is the namespace with its colon, `<ns>:`. The spec's keys begin with `jobs:`, `ratelimit:` and so
-- on after that, and jobwire's own keys with `x:`.
local base = KEYS[1]
local WAITING, ACTIVE, DELAYED = base .. 'jobs:waiting', base .. 'jobs:active', base .. 'jobs:delayed'
local CRON, DEADLETTER = base .. 'jobs:cron', base .. 'jobs:deadletter'
local DATA, STATUS, RESULT = base .. 'jobs:data:', base .. 'jobs:status:', base .. 'jobs:result:'
local LOCK, PROGRESS = base .. 'jobs:lock:', base .. 'jobs:progress:'
local CONCURRENT, MINUTE = base .. 'ratelimit:concurrent:', base .. 'ratelimit:minute:'
local PAUSED, HEARTBEAT = base .. 'queues:paused', base .. 'workers:heartbeat:'
local X = base .. 'x:'
local LOGS = X .. 'logs:'
local WITH_OUTPUT = X .. 'talked' -- ids of jobs that have progress or a log
local DAY = 86400

-- Returns the server's time in ms, as text. The clocks of clients differ, so their times are never compared.
local function server_now()
  local time = redis.call('TIME')
  return string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
end
