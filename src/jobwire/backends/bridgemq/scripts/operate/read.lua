-- Reads jobs by their ids. KEYS[1] namespace; ARGV: type, then ids. Returns the rows of `lib/rows.lua`.
--@include rows
local rows, ids = {}, {}
for index = 2, #ARGV do ids[index - 1] = ARGV[index] end
add_rows(rows, ARGV[1], ids)
return rows
