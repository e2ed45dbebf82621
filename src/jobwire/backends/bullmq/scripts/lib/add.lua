-- Adds jobs, in order, in one call. The result is what BullMQ would leave had they been added one after another. Work
-- that a batch can share is done once: the counter, the push to the list, the markers, the trimming of events.
--@include gate
--@include marker
--@include delayed
--@include prioritized
--@include job_keys
--@include parent

-- Adds `count` jobs of one queue, of which `children` have a parent. They are in ARGV from `at` on, per job
--   features (letters), data, then the arguments of each feature, in this order:
--     n  another name and other options than the job before: name, opts JSON
--     i  an id of its own
--     t  timestamp ms, delay ms, priority (else now, 0, 0)
--     l  last in, first out
--     w  waits for children
--     u  unique: key, ttl ms or '', 'e' to extend or '', 'r' to replace or ''
--     p  has a parent: its full key, its JSON
-- Returns a reply per job, and the index in ARGV after the last. A reply is the job's number, its own id, or a pair:
--   {id, 'duplicated'}, {id, 'deduplicated'}, {-5, parent's key}, {-7, id}, {0, error of the server}
-- A parent whose last child has completed already is made ready, or put into `releases` if that is given.
local function add_jobs(base, at, count, children, now, releases)
  local events = base .. 'events'
  local meta = redis.call('HMGET', base .. 'meta', 'paused', 'concurrency', 'opts.maxLenEvents')
  local target, blocked = gate_of(base, meta[1], meta[2])
  local replies, lefts, rights = {}, {}, {}
  local limit, ready, postponed
  -- A job whose parent is missing takes no number, so a batch with children can't take its numbers in advance.
  local number = children == 0 and redis.call('INCRBY', base .. 'id', count) - count or nil

  local function push_pending()
    over_items('LPUSH', target, lefts)
    over_items('RPUSH', target, rights)
    lefts, rights = {}, {}
  end

  -- Handles an own id that exists already: the stored job takes the new one's part, and may become the parent's child.
  local function duplicate(id, parent_key, parent, timestamp)
    local job = base .. id
    local known = redis.pcall('HMGET', job, 'parentKey', 'returnvalue')
    if known.err then return {0, known.err} end
    if parent_key then
      if known[1] and known[1] ~= parent_key and redis.call('EXISTS', known[1]) == 1 then return {-7, id} end
      if redis.call('ZSCORE', base .. 'completed', id) then
        redis.call('HSET', parent_key .. ':processed', job, known[2] or 'null')
        local parent_base, parent_id = read_parent(parent_key, parent)
        if releases then
          releases[#releases + 1] = { parent_base, parent_id, timestamp }
        else
          push_pending()
          release_if_done(parent_base, parent_id, timestamp)
        end
      else
        redis.call('SADD', parent_key .. ':dependencies', job)
      end
      redis.call('HSET', job, 'parentKey', parent_key, 'parent', parent)
    end
    redis.call('XADD', events, '*', 'event', 'duplicated', 'jobId', id)
    return {id, 'duplicated'}
  end

  local function announce_deduplication(id, key, refused)
    redis.call('XADD', events, '*', 'event', 'debounced', 'jobId', id, 'debounceId', key)
    redis.call('XADD', events, '*', 'event', 'deduplicated', 'jobId', id, 'deduplicationId', key,
      'deduplicatedJobId', refused)
  end

  -- Returns the id of the job that already owns the key, or nil if the new job has taken the key.
  local function deduplicate(id, key, ttl, extend, replace)
    local entry = base .. 'de:' .. key
    local owner = redis.call('GET', entry)
    if not owner then
      if ttl ~= '' then redis.call('SET', entry, id, 'PX', ttl) else redis.call('SET', entry, id) end
      return nil
    end
    if replace then
      if redis.call('ZREM', base .. 'delayed', owner) == 0 then return owner end
      delete_job_keys(base, {owner})
      redis.call('XADD', events, '*', 'event', 'removed', 'jobId', owner, 'prev', 'delayed')
      announce_deduplication(id, key, owner)
      if ttl == '' then
        redis.call('SET', entry, id)
      elseif extend then
        redis.call('SET', entry, id, 'PX', ttl)
      else
        redis.call('SET', entry, id, 'KEEPTTL')
      end
      return nil
    end
    if extend then redis.call('SET', entry, owner, 'PX', ttl) end
    announce_deduplication(owner, key, id)
    return owner
  end

  local name, opts = '', '{}'
  for index = 1, count do
    local features, data = ARGV[at], ARGV[at + 1]
    at = at + 2
    local own, timestamp, delay, priority = '', now, '0', '0'
    local lifo, waits, unique, ttl, extend, replace, parent_key, parent
    if features ~= '' then
      if features:find('n', 1, true) then
        name, opts = ARGV[at], ARGV[at + 1]
        at = at + 2
      end
      if features:find('i', 1, true) then
        own = ARGV[at]
        at = at + 1
      end
      if features:find('t', 1, true) then
        timestamp, delay, priority = ARGV[at], ARGV[at + 1], ARGV[at + 2]
        at = at + 3
      end
      lifo, waits = features:find('l', 1, true), features:find('w', 1, true)
      if features:find('u', 1, true) then
        unique, ttl, extend, replace = ARGV[at], ARGV[at + 1], ARGV[at + 2] == 'e', ARGV[at + 3] == 'r'
        at = at + 4
      end
      if features:find('p', 1, true) then
        parent_key, parent = ARGV[at], ARGV[at + 1]
        at = at + 2
      end
    end

    local reply
    if parent_key and redis.call('EXISTS', parent_key) == 0 then
      reply = {-5, parent_key}
    else
      if number then number = number + 1 end
      local turn = number or redis.call('INCR', base .. 'id')
      local id = own ~= '' and own or tostring(turn)
      if turn > 99999999999999 and own == '' then id = string.format('%.0f', turn) end
      local job = base .. id
      limit = limit or event_limit(base, meta[3])
      if own ~= '' and redis.call('EXISTS', job) == 1 then
        reply = duplicate(id, parent_key, parent, timestamp)
      else
        local owner = unique and deduplicate(id, unique, ttl, extend, replace)
        if owner then
          reply = {owner, 'deduplicated'}
        else
          local stored = redis.pcall('HSET', job, 'name', name, 'data', data, 'opts', opts, 'timestamp', timestamp,
            'delay', delay, 'priority', priority)
          if type(stored) == 'table' then
            reply = {0, stored.err}
          else
            if unique then redis.call('HSET', job, 'deid', unique) end
            if parent_key then redis.call('HSET', job, 'parentKey', parent_key, 'parent', parent) end
            redis.call('XADD', events, '*', 'event', 'added', 'jobId', id, 'name', name)
            if waits then
              redis.call('ZADD', base .. 'waiting-children', timestamp, id)
              redis.call('XADD', events, '*', 'event', 'waiting-children', 'jobId', id)
            elseif delay ~= '0' then
              local due = tonumber(timestamp) + tonumber(delay)
              insert_delayed(base, id, due)
              redis.call('XADD', events, '*', 'event', 'delayed', 'jobId', id, 'delay', due)
              postponed = true
            else
              if priority ~= '0' then
                insert_prioritized(base, id, tonumber(priority))
              elseif lifo then
                rights[#rights + 1] = id
              else
                lefts[#lefts + 1] = id
              end
              redis.call('XADD', events, '*', 'event', 'waiting', 'jobId', id)
              ready = true
            end
            if parent_key then redis.call('SADD', parent_key .. ':dependencies', job) end
            reply = own ~= '' and own or turn
          end
        end
      end
    end
    replies[index] = reply
  end

  push_pending()
  if ready and not blocked then mark_ready(base) end
  if postponed then mark_delayed(base) end
  if limit then redis.call('XTRIM', events, 'MAXLEN', '~', limit) end
  return replies, at
end
