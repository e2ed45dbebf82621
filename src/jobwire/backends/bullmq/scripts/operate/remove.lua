-- Deletes jobs and everything that belongs to them.
-- KEYS[1] base of the queue; ARGV[1] '1' to delete their children too, ARGV[2..] ids.
-- Returns one answer per id: 1 done, 0 no such job, -1 a scheduler's current job, -2 a worker runs it or a child.
--@include remove_tree

local with_children = ARGV[1] == '1'

local function answer(base, id)
  if not is_job(base, id) then
    -- The entry of a job that is gone is removed as well.
    take_from_container(base, id)
    return 0
  end
  if is_schedulers_current_job(base, id) then return -1 end
  if is_locked(base, id, with_children) then return -2 end
  remove_tree(base, id, with_children)
  return 1
end

local answers = {}
for i = 2, #ARGV do answers[i - 1] = answer(KEYS[1], ARGV[i]) end
return answers
