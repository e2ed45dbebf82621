-- Reads figures of types. KEYS[1] namespace; ARGV: types. Returns for each, one after another, the numbers of
-- `lib/counts.lua` and the data of the first and of the last waiting job, '' if there is none.
--@include counts
local now, found = server_now(), {}
local function data_at(kind, position)
  local id = redis.call('ZRANGE', X .. 'type:' .. kind, position, position)[1]
  return id and redis.call('MGET', DATA .. id)[1] or ''
end
for _, kind in ipairs(ARGV) do
  for _, number in ipairs(counts_of(kind, now)) do found[#found + 1] = number end
  found[#found + 1] = data_at(kind, 0)
  found[#found + 1] = data_at(kind, -1)
end
return found
