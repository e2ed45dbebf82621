-- Counts the attempts of a job.

-- Returns the number of attempts with this one. A stored value that is not a count is 0, as for the worker that read it:
-- NaN or 1.5 with one more would be none either, so that there would always be a next attempt.
local function attempts_after(stored)
  local made = tonumber(stored or 0)
  if not made or made ~= math.floor(made) or made < 0 or made > 9007199254740991 then made = 0 end
  return made + 1
end
