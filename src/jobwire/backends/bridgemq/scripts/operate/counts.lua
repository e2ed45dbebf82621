-- Counts the jobs of a type by state. KEYS[1] namespace; ARGV: type. Returns the numbers of `lib/counts.lua`.
--@include counts
return counts_of(ARGV[1], server_now())
