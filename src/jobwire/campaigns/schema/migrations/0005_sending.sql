-- How far the messages of a started campaign have come on their way to the queue. Not in `campaigns`, whose row every
-- settled message updates.
--   next_at: the time of the next free slot of the delivery rate.
--   fed_until: the time for which the last message in the queue is planned.
--   prepared_at: when the jobs of the campaign were created.
CREATE TABLE campaign_sending (
    campaign_id text PRIMARY KEY REFERENCES campaigns (id) ON DELETE CASCADE,
    next_at timestamptz NOT NULL DEFAULT now(),
    fed_until timestamptz NOT NULL DEFAULT now(),
    prepared_at timestamptz
) WITH (fillfactor = 50);
