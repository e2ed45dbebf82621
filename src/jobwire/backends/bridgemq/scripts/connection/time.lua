-- KEYS[1] namespace. Returns the server's time in ms.
--@include keys
return server_now()
