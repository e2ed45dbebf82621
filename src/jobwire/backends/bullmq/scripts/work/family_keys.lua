-- Lists the children of jobs.
-- KEYS the jobs' keys; ARGV[1] how many of each kind (completed, pending, failed, ignored) at most.
-- Returns a list of keys per job.

local most = tonumber(ARGV[1])

local function scan(found, command, key, step)
  local cursor, left = '0', most
  repeat
    local page = redis.call(command, key, cursor, 'COUNT', most)
    cursor = page[1]
    for index = 1, #page[2], step do
      if left == 0 then return end
      found[#found + 1] = page[2][index]
      left = left - 1
    end
  until cursor == '0'
end

local families = {}
for index, job in ipairs(KEYS) do
  local found = {}
  scan(found, 'HSCAN', job .. ':processed', 2)
  scan(found, 'SSCAN', job .. ':dependencies', 1)
  for _, child in ipairs(redis.call('ZRANGE', job .. ':unsuccessful', 0, most - 1)) do found[#found + 1] = child end
  scan(found, 'HSCAN', job .. ':failed', 2)
  families[index] = found
end
return families
