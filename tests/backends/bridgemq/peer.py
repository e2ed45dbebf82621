"""A peer that knows the spec and nothing of jobwire: a producer, and a claimer with the spec's claim and release.

Written from the description of the protocol: it looks at the first hundred ids, takes a lock before it looks at a job,
matches by the routing table, counts what it claims, and sets no status. Where that description says that the script
fails on odd data, this one fails too.
"""

from __future__ import annotations

import json
import time
import uuid
from typing import Any

from redis.asyncio import Redis

_CLAIM = """
local WINDOW = 100
local me, mine, now_locked = ARGV[1], {stack = cjson.decode(ARGV[2]), capabilities = cjson.decode(ARGV[3]),
  region = cjson.decode(ARGV[4])}, ARGV[6]

local function any_of(asked, owned)
  for _, one in ipairs(asked) do
    for _, other in ipairs(owned) do
      if one == other then return true end
    end
  end
  return false
end

local function all_of(asked, owned)
  for _, one in ipairs(asked) do
    if not any_of({one}, owned) then return false end
  end
  return true
end

local function suits(target)
  if not target then return true end
  if target.server and target.server ~= '' then return target.server == me end
  local everything = (target.mode or 'any') ~= 'any'
  for _, name in ipairs({'stack', 'capabilities', 'region'}) do
    local asked = target[name]
    if asked and #asked > 0 then
      local test = (everything and name == 'capabilities') and all_of or any_of
      if not test(asked, mine[name]) then return false end
    end
  end
  return true
end

for _, id in ipairs(redis.call('LRANGE', KEYS[1], 0, WINDOW - 1)) do
  local lock = ARGV[8] .. id
  if redis.call('SET', lock, me, 'NX', 'EX', now_locked) then
    local text = redis.call('GET', ARGV[7] .. id)
    if not text then
      redis.call('LREM', KEYS[1], 1, id)
    else
      local job = cjson.decode(text)
      local counter = ARGV[9] .. job.type
      local most = job.rateLimit and job.rateLimit.maxConcurrent
      local open = redis.call('SISMEMBER', KEYS[3], job.type) == 0
        and not (most and tonumber(redis.call('GET', counter) or '0') >= most)
      if open and suits(job.target) then
        redis.call('LREM', KEYS[1], 1, id)
        redis.call('SADD', KEYS[2], id)
        redis.call('INCR', counter)
        return text
      end
    end
    redis.call('DEL', lock)
  end
end
return nil
"""

_RELEASE = """
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('DEL', KEYS[1])
redis.call('SREM', KEYS[2], ARGV[2])
if tonumber(redis.call('GET', KEYS[3]) or '0') > 0 then redis.call('DECR', KEYS[3]) end
return 1
"""

_DELAYED = """
local due = redis.call('ZRANGEBYSCORE', KEYS[1], 0, ARGV[1], 'LIMIT', 0, ARGV[2])
for _, id in ipairs(due) do
  redis.call('ZREM', KEYS[1], id)
  redis.call('RPUSH', KEYS[2], id)
end
return #due
"""

_CRON = """
for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], 0, ARGV[1], 'LIMIT', 0, 100)) do
  if redis.call('EXISTS', KEYS[3] .. id) == 1 then redis.call('RPUSH', KEYS[2], id) end
end
"""


class Peer:
    """One foreign process in a namespace."""

    def __init__(self, redis: Redis, namespace: str) -> None:
        self.redis = redis
        self._ns = namespace
        self.server = "peer"
        self._profile = ['[""]', "[]", '[""]']

    def fellow(self, server: str, *, stack: str = "", region: str = "", can: tuple[str, ...] = ()) -> Peer:
        """Another one, with a name and a profile."""
        other = Peer(self.redis, self._ns)
        other.server = server
        other._profile = [json.dumps([stack]), json.dumps(list(can)), json.dumps([region])]
        return other

    def key(self, *parts: str) -> str:
        return ":".join((self._ns, *parts))

    async def dispatch(self, kind: str, payload: Any = None, **fields: Any) -> str:
        """What the spec's producer writes, in its order: data, queue, status. Schedule decides the queue."""
        job_id = str(uuid.uuid4())
        now = int(time.time() * 1000)
        job = {
            "jobId": job_id,
            "type": kind,
            "payload": {} if payload is None else payload,
            "schedule": {},
            "retry": {"attempts": 3, "backoff": {"type": "exponential", "delay": 2000}},
            "priority": 5,
            "dependsOn": [],
            "target": {},
            "metadata": {},
            "createdAt": now,
            "attempts": 0,
            **fields,
        }
        await self.store(job_id, json.dumps(job))
        schedule = job["schedule"] or {}
        status = "waiting"
        if "cron" in schedule:
            await self.redis.zadd(self.key("jobs", "cron"), {job_id: now + 60_000})
            status = "cron"
        elif "runAt" in schedule or "delay" in schedule:
            due = schedule.get("runAt", now + schedule.get("delay", 0))
            await self.redis.zadd(self.key("jobs", "delayed"), {job_id: due})
            status = "delayed"
        else:
            await self.push(job_id, front=job["priority"] >= 7)
        await self.redis.set(self.key("jobs", "status", job_id), status)
        return job_id

    async def store(self, job_id: str, data: str | bytes) -> None:
        await self.redis.set(self.key("jobs", "data", job_id), data)

    async def push(self, job_id: str, *, front: bool = False) -> None:
        push = self.redis.lpush if front else self.redis.rpush
        await push(self.key("jobs", "waiting"), job_id)

    async def claim(self, lock_seconds: int = 30) -> dict[str, Any] | None:
        keys = [self.key("jobs", "waiting"), self.key("jobs", "active"), self.key("queues", "paused")]
        prefixes = [
            self.key("jobs", "data") + ":",
            self.key("jobs", "lock") + ":",
            self.key("ratelimit", "concurrent") + ":",
        ]
        args = [self.server, *self._profile, int(time.time() * 1000), lock_seconds, *prefixes]
        text = await self.redis.register_script(_CLAIM)(keys, args)
        return None if text is None else json.loads(text)

    async def finish(self, job: dict[str, Any], result: Any = None) -> bool:
        """Result, status, release, as the spec's worker does; True if the lock was still its own."""
        job_id = job["jobId"]
        done = {"success": True, "data": result, "completedAt": int(time.time() * 1000), "processingTime": 1}
        await self.redis.set(self.key("jobs", "result", job_id), json.dumps(done), ex=86_400)
        await self.redis.set(self.key("jobs", "status", job_id), "completed")
        return await self.release(job_id, job["type"])

    async def release(self, job_id: str, kind: str) -> bool:
        keys = [self.key("jobs", "lock", job_id), self.key("jobs", "active"), self.key("ratelimit", "concurrent", kind)]
        return bool(await self.redis.register_script(_RELEASE)(keys, [self.server, job_id]))

    async def move_delayed(self, now_ms: int) -> int:
        return await self.redis.eval(_DELAYED, 2, self.key("jobs", "delayed"), self.key("jobs", "waiting"), now_ms, 100)

    async def push_cron(self, now_ms: int) -> None:
        keys = [self.key("jobs", "cron"), self.key("jobs", "waiting"), self.key("jobs", "data") + ":"]
        await self.redis.eval(_CRON, 3, *keys, now_ms)
