-- Returns a text about a type's queue that changes when there may be a new job to claim. Jobs of other types don't
-- change it, unless a peer pushed or took them: a job that is not in the index may be of any type.
--@include adopt
local function look_of(kind)
  local mine = X .. 'type:' .. kind
  local due = redis.call('ZRANGE', X .. 'delayed:' .. kind, 0, 0, 'WITHSCORES')
  local paused = redis.call('SMISMEMBER', PAUSED, kind, '*')
  local words = { redis.call('ZCARD', mine), redis.call('ZRANGE', mine, 0, 0)[1] or '',
    redis.call('ZRANGE', mine, -1, -1)[1] or '', due[2] or '', paused[1], paused[2] }
  local length = redis.call('LLEN', WAITING)
  local first, last = redis.call('LINDEX', WAITING, 0), redis.call('LINDEX', WAITING, -1)
  if length ~= redis.call('ZCARD', ORDER) or not is_known(first) or not is_known(last) then
    words[7], words[8], words[9] = length, first or '', last or ''
  end
  return table.concat(words, '|')
end
