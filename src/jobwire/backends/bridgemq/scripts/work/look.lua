-- KEYS[1] namespace; ARGV: type. Returns the text of `lib/look.lua`.
--@include look
return look_of(ARGV[1])
