"""Prepares started campaigns, and feeds their messages to the queue in windows.

A window is the messages of the next seconds, each with its time. So the queue holds little of a campaign of any size,
and a pause, a cancel or another rate reaches all messages behind the window at once.

Messages are fed in the order of their ids, and a cursor of the campaign moves along. So feeding writes a job of the
queue for each message, and nothing to its row (`schema/migrations/0006_cursors.sql`).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from datetime import timedelta

from jobwire.campaigns.channel_names import is_username
from jobwire.campaigns.connections import Connections
from jobwire.campaigns.errors import NotFound
from jobwire.campaigns.models import Campaign, FeedPlan, Template
from jobwire.campaigns.sending.payload import payload_of
from jobwire.campaigns.sending.queues import CampaignQueues, message_options
from jobwire.campaigns.states import CampaignStatus
from jobwire.campaigns.store import Store
from jobwire.campaigns.store.sending import MINUTE
from jobwire.campaigns.store.table import Connection
from jobwire.campaigns.templates import MessageTemplate
from jobwire.errors import InvalidOption
from jobwire.options import NewJob

logger = logging.getLogger("jobwire.campaigns")

WINDOW = 10.0
"""Seconds of messages that are in the queue."""
MOST = 4000
"""Messages of a campaign that are in the queue at most, whatever its rate. A slow one has two windows and `SPARE`."""
SPARE = 200
AT_ONCE = 1000
"""Messages that one transaction feeds."""
SLICE = 200
"""Messages that are prepared at a time. Between two slices the worker goes on sending."""
NO_CHANNEL = "CHANNEL_MISSING: the channel does not exist any more"
NO_USERNAME = "USERNAME_INVALID: the channel's username is not of the form @name"
"""The errors of messages whose channel is missing or has no username. Only adopted tables have such messages."""


class Feeder:
    """Prepares and feeds campaigns. Several may run: each campaign is fed by one at a time."""

    def __init__(self, store: Store, connections: Connections, queues: CampaignQueues) -> None:
        self._store = store
        self._connections = connections
        self._queues = queues

    async def prepare(self, campaign_id: str) -> bool:
        """Creates the jobs of a RUNNING campaign, unless that was done. Returns False if another worker does so now.

        A campaign whose messages can't be made is FAILED."""
        async with self._connections.use() as connection, connection.transaction():
            if not await self._store.sending.try_lock(connection, campaign_id):
                return False
            if await self._store.sending.is_prepared(connection, campaign_id):
                return True
            campaign = await self._store.campaigns.get(connection, campaign_id)
            if campaign.status is not CampaignStatus.RUNNING:
                return True
            try:
                await self._check(connection, campaign)
            except InvalidOption as trouble:
                await self._fail(connection, campaign_id, trouble)
                return True
            # Before the campaign is locked: a worker that adds this row at the same time waits for the campaign.
            await self._store.sending.ensure(connection, [campaign_id])
            created = await self._store.jobs.create(connection, campaign_id)
            if created is None:  # paused or cancelled since it was read; a resumed one is prepared in another round
                return True
            await self._store.sending.set_prepared(connection, campaign_id)
        logger.info("campaign %s (%s) has %d messages to send", campaign_id, campaign.name, created)
        return True

    async def feed(self, campaign_id: str) -> int:
        """Puts the next messages of a campaign into the queue. Returns how many, 0 if its window is full."""
        async with self._connections.use() as connection, connection.transaction():
            if not await self._store.sending.try_lock(connection, campaign_id):
                return 0
            plan = await self._store.sending.plan(connection, campaign_id)
            if plan is None:
                return 0
            step = MINUTE / plan.delivery_rate
            ahead = WINDOW - (plan.first - plan.now).total_seconds()
            if ahead <= 0:
                return 0
            most = min(MOST, 2 * int(WINDOW / step) + SPARE)
            fed = await self._store.jobs.count_fed(connection, campaign_id, most)
            room = min(int(ahead / step) + 1, AT_ONCE, most - fed)
            if room <= 0:
                return 0
            try:
                template = _template(plan.template_id, plan, plan.params)
            except InvalidOption as trouble:
                await self._fail(connection, campaign_id, trouble)
                return 0
            return await self._feed(connection, plan, template, step, room)

    async def _feed(
        self, connection: Connection, plan: FeedPlan, template: MessageTemplate, step: float, room: int
    ) -> int:
        until = plan.first + timedelta(seconds=room * step)
        taken = await self._store.jobs.feed(connection, plan.campaign_id, due_at=until, limit=room)
        fed = [job for job in taken if job.username is not None and is_username(job.username)]
        if len(fed) < len(taken):
            orphans = [job.job_id for job in taken if job.username is None]
            nameless = [job.job_id for job in taken if job.username is not None and not is_username(job.username)]
            await self._store.jobs.fail_queued(connection, orphans, NO_CHANNEL)
            await self._store.jobs.fail_queued(connection, nameless, NO_USERNAME)
        if not fed:
            return len(taken)
        options = message_options(plan.retry_limit)
        times = [plan.first + timedelta(seconds=place * step) for place in range(len(fed) + 1)]
        jobs: list[NewJob] = []
        for start in range(0, len(fed), SLICE):
            some = slice(start, start + SLICE)
            jobs += [
                NewJob(payload_of(plan, template, job), run_at=time, **options)
                for job, time in zip(fed[some], times[some], strict=False)
            ]
            await asyncio.sleep(0)
        await self._queues.add_messages(connection, jobs)
        await self._store.sending.set_fed_until(connection, plan.campaign_id, times[-1])
        return len(fed)

    async def _check(self, connection: Connection, campaign: Campaign) -> None:
        """Raises InvalidOption if no message can be made for a campaign."""
        found = None
        if campaign.template_id is not None:
            with contextlib.suppress(NotFound):
                found = await self._store.templates.get(connection, campaign.template_id)
        _template(campaign.template_id, found, campaign.params)

    async def _fail(self, connection: Connection, campaign_id: str, trouble: InvalidOption) -> None:
        if await self._store.campaigns.fail_if_running(connection, campaign_id, str(trouble)):
            logger.error("campaign %s has failed: %s", campaign_id, trouble)


def _template(template_id: str | None, found: Template | FeedPlan | None, params: object) -> MessageTemplate:
    """Returns the template of a campaign. Raises InvalidOption if no message can be made of it. Campaigns of other
    programs were not checked when they were created, and their templates may change."""
    if found is None or found.content is None:
        raise InvalidOption("template_id", template_id, "must be that of a template")
    if not isinstance(params, dict):
        raise InvalidOption("params", params, "must be a JSON object")
    message = MessageTemplate(found.content, found.media_type, found.media_url)
    message.check_params({name: value for name, value in params.items() if name in message.names})  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return message
