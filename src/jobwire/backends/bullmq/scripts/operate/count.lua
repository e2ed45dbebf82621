-- Counts the jobs of a queue by state. KEYS[1] base of the queue. Returns the numbers of `lib/count.lua`.

--@include count

return counts()
