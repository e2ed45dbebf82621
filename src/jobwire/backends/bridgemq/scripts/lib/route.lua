-- Reads from a job's data which workers may run it. Jobs of one type with the same target and the same limits share a
-- route. A route has a scope (type, and the server if the job names one) and a signature within it. The job's own data
-- is authoritative. A route only sorts jobs.

local PLAIN = '-'

-- Returns `0::type`, or `<length>:<server>:type`: the length keeps names with colons apart.
local function scope_of(kind, server) return #server .. ':' .. server .. ':' .. kind end

local function route_key(route) return X .. 'line:' .. route.sig .. ':' .. route.scope end

-- Returns a route that the caller of a script has computed.
local function given_route(kind, server, sig, definition)
  return { type = kind, server = server, scope = scope_of(kind, server), sig = sig, definition = definition }
end

-- Returns a list of texts, nil if there is none, false if the value is something else.
local function texts(value)
  if value == nil or value == cjson.null then return nil end
  if type(value) ~= 'table' then return false end
  local count = 0
  for _ in pairs(value) do count = count + 1 end
  for index = 1, count do
    if type(value[index]) ~= 'string' then return false end
  end
  return count > 0 and value or nil
end

local function limit(limits, name)
  local value = limits[name]
  if value == nil or value == cjson.null then return nil end
  if type(value) ~= 'number' or value ~= value or math.abs(value) >= 2 ^ 53 then return false end
  return math.floor(value)
end

-- UTF-8 sequences by their number of bytes. Overlong forms, surrogates and numbers beyond Unicode are not among them.
local SEQUENCES = { '^[%z\1-\127]+', '^[\194-\223][\128-\191]', '^\224[\160-\191][\128-\191]',
  '^[\225-\236\238\239][\128-\191][\128-\191]', '^\237[\128-\159][\128-\191]',
  '^\240[\144-\191][\128-\191][\128-\191]', '^[\241-\243][\128-\191][\128-\191][\128-\191]',
  '^\244[\128-\143][\128-\191][\128-\191]' }

local function is_utf8(text)
  if not text:find('[\128-\255]') then return true end
  local at = 1
  while at <= #text do
    local last
    for _, sequence in ipairs(SEQUENCES) do
      last = last or select(2, text:find(sequence, at))
    end
    if not last then return false end
    at = last + 1
  end
  return true
end

-- Returns the route of a job, or nil and the error in its data. Without data (`data` is false) the error is nil too. A
-- null counts as absent, except for a server: by the spec's script no worker may run such a job, and so it is here.
local function route_of(data, id)
  if not data then return nil, redis.call('EXISTS', DATA .. id) == 1 and 'the job data is not a string' or nil end
  if not is_utf8(id) then return nil, 'the job id is not valid UTF-8' end
  local fine, job = pcall(cjson.decode, data)
  if not fine or type(job) ~= 'table' then return nil, 'the job data is not a JSON object' end
  if type(job.type) ~= 'string' or job.type == '' then return nil, 'the job has no type' end
  local target, limits = job.target, job.rateLimit
  if target == cjson.null or target == nil then target = {} end
  if limits == cjson.null or limits == nil then limits = {} end
  if type(target) ~= 'table' then return nil, 'target is not an object' end
  if type(limits) ~= 'table' then return nil, 'rateLimit is not an object' end
  local parts, server = {}, ''
  local function part(name, value) parts[#parts + 1] = '"' .. name .. '":' .. cjson.encode(value) end
  if target.server == cjson.null then
    part('nobody', true)
  elseif target.server ~= nil and target.server ~= '' then
    if type(target.server) ~= 'string' then return nil, 'target.server is not a string' end
    server = target.server
    part('server', server)
  else
    for _, name in ipairs({ 'stack', 'capabilities', 'region' }) do
      local list = texts(target[name])
      if list == false then return nil, 'target.' .. name .. ' is not a list of strings' end
      if list then part(name, list) end
    end
    if #parts > 0 and target.mode ~= nil and target.mode ~= 'any' then part('mode', 'all') end
  end
  for _, name in ipairs({ 'maxConcurrent', 'maxPerMinute' }) do
    local most = limit(limits, name)
    if most == false then return nil, 'rateLimit.' .. name .. ' is not a number below 2^53' end
    if most then part(name, most) end
  end
  local route = given_route(job.type, server, PLAIN, '')
  if #parts > 0 then
    route.definition = '{' .. table.concat(parts, ',') .. '}'
    if not is_utf8(route.definition) then return nil, 'target is not valid UTF-8' end
    route.sig = redis.sha1hex(route.definition):sub(1, 16)
  end
  route.front = type(job.priority) == 'number' and job.priority >= 7
  return route
end
