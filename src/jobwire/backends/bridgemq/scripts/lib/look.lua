-- How a type's queue looks from outside, in a few words that differ when there may be something new to claim.
--@include place
local function look_of(kind)
  local due = redis.call('ZRANGE', X .. 'delayed:' .. kind, 0, 0, 'WITHSCORES')
  local paused = redis.call('SMISMEMBER', PAUSED, kind, '*')
  return table.concat({ redis.call('LLEN', WAITING), redis.call('LINDEX', WAITING, 0) or '',
    redis.call('LINDEX', WAITING, -1) or '', due[2] or '', paused[1], paused[2] }, '|')
end
