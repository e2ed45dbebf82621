-- Adds trees of jobs across queues, all or nothing: everything that could be refused is checked before the first write.
--
-- KEYS     bases of the queues
-- ARGV     now ms, number of parents that are in the store already, their keys, number of jobs, then
--            per job  which of the KEYS, id, key of its parent or ''
--            per job  the arguments of add_jobs; a parent comes before its children
-- Returns  a reply per job, as add_jobs describes it; or one pair: {-5, parent's key}, {-7, id}, {0, error text}
-- A parent without a pending child becomes ready when all jobs are added. BullMQ 5.62 does that as soon as it finds a
-- child that has completed already, and so runs the parent before the children that come after it in the tree.
--@include add

local now, at = ARGV[1], 3
for _ = 1, tonumber(ARGV[2]) do
  if redis.call('EXISTS', ARGV[at]) == 0 then return {-5, ARGV[at]} end
  at = at + 1
end
local count = tonumber(ARGV[at])
local about = at + 1
at = about + 3 * count

for index = 0, count - 1 do
  local own = about + 3 * index
  local base, id, parent_key = KEYS[tonumber(ARGV[own])], ARGV[own + 1], ARGV[own + 2]
  local kind = redis.call('TYPE', base .. id).ok
  if kind == 'hash' and parent_key ~= '' then
    local known = redis.call('HGET', base .. id, 'parentKey')
    if known and known ~= parent_key and redis.call('EXISTS', known) == 1 then return {-7, id} end
  elseif kind ~= 'hash' and kind ~= 'none' then
    return {0, 'a key of another kind has the name of job ' .. id}
  end
end

-- Consecutive jobs of one queue, such as a level of a tree, are added together (5,000 children: 33 µs each instead of
-- 38).
local replies, releases = {}, {}
local first = 0
while first < count do
  local queue_index = ARGV[about + 3 * first]
  local next_one, children = first, 0
  while next_one < count and ARGV[about + 3 * next_one] == queue_index do
    if ARGV[about + 3 * next_one + 2] ~= '' then children = children + 1 end
    next_one = next_one + 1
  end
  local part
  part, at = add_jobs(KEYS[tonumber(queue_index)], at, next_one - first, children, now, releases)
  for _, reply in ipairs(part) do replies[#replies + 1] = reply end
  first = next_one
end
for _, parent in ipairs(releases) do release_if_done(unpack(parent)) end
return replies
