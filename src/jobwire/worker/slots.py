"""The slots of a worker, which its queues share.

A worker runs at most so many jobs at once, over all its queues. An engine takes slots for each call that claims. It
counts as their user from that moment until the call has returned less, or the claimed job has ended.

If several queues have work and there are too few slots for it, each free slot goes to the queue that uses the fewest.
Among equals it goes to the queue that got one longest ago. So no queue can keep another waiting for longer than its
running jobs take. A queue that got fewer slots than it asked for is short. It keeps its claim to its part of the free
slots until it asks again or withdraws.

A queue must not wait for work at the store while there is no slot for it, since its wait could take a wakeup that
another worker has a slot for. But as long as jobs are short, a slot is free again in a moment, and ending a wait costs
more than the job. So queues wait until all slots have been in use for a while. A wakeup that comes in this time and
finds no slot is passed on, and its queue is short.
"""

from __future__ import annotations

import asyncio
import itertools
from typing import Protocol

_FULL_FOR = 0.1
"""Seconds without a free slot after which waits for work are ended."""


class SlotUser(Protocol):
    """The engine of one queue."""

    @property
    def slots_used(self) -> int:
        """The number of jobs that run, and of those that calls under way may still claim."""
        ...

    def slots_freed(self) -> None:
        """Called when another queue has freed slots."""
        ...

    def slots_gone(self) -> None:
        """Called when no slot has been free for a while."""
        ...


class Slots:
    """All slots of one worker."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._shares: list[Share] = []
        self._turns = itertools.count(1)
        self._times_freed = 0
        self.gone = False
        """True if no slot has been free for a while."""
        self._full_since: int | None = None
        """The value of `_times_freed` when the timer was started that looks if the slots are still in use."""

    @property
    def shared(self) -> bool:
        """True if more than one queue uses these slots."""
        return len(self._shares) > 1

    @property
    def free(self) -> int:
        return self._total - sum(share.used for share in self._shares)

    def share(self, user: SlotUser, limit: int, *, asks: bool) -> Share:
        """Adds a queue, which may use up to `limit` of the slots. If it asks for them, the queue that starts first
        leaves it its part."""
        share = Share(self, user, min(limit, self._total))
        share.short = share.limit if asks else 0
        self._shares.append(share)
        return share

    def part_of(self, one: Share, wanted: int) -> int:
        """Returns how many of the wanted slots the queue may take now."""
        free = self.free
        rivals = [share for share in self._shares if share.short and share is not one]
        part = min(wanted, free) if not rivals else _fair_part(one, wanted, free, rivals)
        if part:
            one.turn = next(self._turns)
        if part >= free:
            self._watch_for_full()
        return part

    def freed_by(self, one: Share) -> None:
        """Lets the other queues take slots, or wait for work."""
        self._times_freed += 1
        self.gone = False
        for share in self._shares:
            if share is not one:
                share.user.slots_freed()

    def _watch_for_full(self) -> None:
        if self._full_since is None:
            self._full_since = self._times_freed
            asyncio.get_running_loop().call_later(_FULL_FOR, self._look_if_full)

    def _look_if_full(self) -> None:
        since, self._full_since = self._full_since, None
        if self.free > 0:
            return
        if since != self._times_freed:
            self._watch_for_full()
            return
        self.gone = True
        for share in self._shares:
            share.user.slots_gone()


class Share:
    """The part of the slots that one queue may use."""

    __slots__ = ("_slots", "limit", "short", "turn", "user")

    def __init__(self, slots: Slots, user: SlotUser, limit: int) -> None:
        self._slots = slots
        self.user = user
        self.limit = limit
        self.short = 0
        """The number of slots that the queue has asked for and not got."""
        self.turn = 0
        """The number of the last grant of a slot to this queue, counted over all queues."""

    @property
    def used(self) -> int:
        return self.user.slots_used

    @property
    def has_free(self) -> bool:
        return self.user.slots_used < self.limit and (not self._slots.shared or self._slots.free > 0)

    @property
    def may_wait(self) -> bool:
        """True if the queue may wait for work: a slot is free, or will probably be in a moment."""
        return self.user.slots_used < self.limit and not self._slots.gone

    def take(self, wanted: int, *, asks_on: bool) -> int:
        """Returns how many of the wanted slots the queue may use. The caller must count them as used at once. With
        `asks_on` the queue is short if these are fewer: it has work for more."""
        wanted = max(0, min(wanted, self.limit - self.user.slots_used))
        if not self._slots.shared:
            return wanted
        was_short, self.short = self.short, 0
        part = self._slots.part_of(self, wanted) if wanted else 0
        if asks_on:
            self.short = wanted - part
        if was_short and not self.short:
            self._slots.freed_by(self)  # the others may have left it slots that it does not need
        return part

    def withdraw(self) -> None:
        """Gives up the queue's claim to free slots, until it asks again."""
        if self.short:
            self.short = 0
            self._slots.freed_by(self)

    def freed(self) -> None:
        """To be called when the queue uses fewer slots than before."""
        if self._slots.shared:
            self._slots.freed_by(self)


def _fair_part(one: Share, wanted: int, free: int, rivals: list[Share]) -> int:
    """Divides the free slots, one by one, and returns how many of them the queue gets."""
    used = {share: share.used for share in (one, *rivals)}
    asked = {one: wanted, **{rival: min(rival.short, rival.limit - used[rival]) for rival in rivals}}
    part = 0
    for _ in range(free):
        asking = [share for share, number in asked.items() if number > 0]
        if not asking:
            break
        share = min(asking, key=lambda each: (used[each], each.turn))
        used[share] += 1
        asked[share] -= 1
        part += share is one
    return part
