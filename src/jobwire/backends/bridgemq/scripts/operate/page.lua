-- Reads a page of a type's jobs in one container. KEYS[1] namespace; ARGV: type, container (`type`, `delayed`,
-- `completed`, `dead`, `claims`), 'up' or 'down' by score, how many, score and id of the job that the last page ended
-- with ('' '' at first), how many jobs to skip (first page only).
-- Returns score and row of each job. A page continues after the job that the last one ended with. If that job has left,
-- it continues after the jobs that were before it.
--@include rows
local kind, container, up, wanted, score, last = ARGV[1], ARGV[2], ARGV[3] == 'up', tonumber(ARGV[4]), ARGV[5], ARGV[6]
local skip = tonumber(ARGV[7])
local key, ids, scores = X .. container .. ':' .. kind, {}, {}
if container == 'claims' then
  local records = redis.call('HGETALL', key)
  local all = {}
  for index = 1, #records, 2 do
    all[#all + 1] = { records[index], tonumber(records[index + 1]:match('|(%d+)|') or 0) }
  end
  local function before(one, other)
    if not up then one, other = other, one end
    if one[2] ~= other[2] then return one[2] < other[2] end
    return one[1] < other[1]
  end
  table.sort(all, before)
  for number, one in ipairs(all) do
    local after = number > skip and (score == '' or before({ last, tonumber(score) }, one))
    if after and #ids < wanted then ids[#ids + 1], scores[#scores + 1] = one[1], string.format('%.17g', one[2]) end
  end
else
  local start = skip
  if score ~= '' then
    if redis.call('ZSCORE', key, last) == score then
      start = redis.call(up and 'ZRANK' or 'ZREVRANK', key, last) + 1
    else
      start = up and redis.call('ZCOUNT', key, '-inf', '(' .. score) or redis.call('ZCOUNT', key, '(' .. score, '+inf')
    end
  end
  local found = redis.call(up and 'ZRANGE' or 'ZREVRANGE', key, start, start + wanted - 1, 'WITHSCORES')
  for index = 1, #found, 2 do ids[#ids + 1], scores[#scores + 1] = found[index], found[index + 1] end
end
local rows = {}
add_rows(rows, kind, ids)
return { scores, rows }
