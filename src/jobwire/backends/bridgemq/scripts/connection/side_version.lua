-- Raises the version of the side data by one. KEYS[1] namespace; ARGV: the version that it must have. Returns 1 if
-- done, 0 if the version is another one.
--@include keys
local version = X .. 'version'
if tonumber(redis.call('GET', version) or 1) ~= tonumber(ARGV[1]) then return 0 end
redis.call('SET', version, ARGV[1] + 1)
return 1
