-- KEYS[1] namespace. Returns the server's time in ms.
--@include place
return server_now()
