"""The tables as the specification's application left them, and rows in every state, legal and not."""

from __future__ import annotations

TABLES = """
CREATE TABLE users (id TEXT PRIMARY KEY, username TEXT);
CREATE TABLE batches (id TEXT PRIMARY KEY, name TEXT);
CREATE TABLE templates (id TEXT PRIMARY KEY, name TEXT, content TEXT, media_type TEXT, media_url TEXT);
CREATE TABLE channels (
  id TEXT PRIMARY KEY, username TEXT, category TEXT, is_active BOOLEAN DEFAULT true, error_count INTEGER DEFAULT 0,
  last_error TEXT, created_at TIMESTAMPTZ DEFAULT NOW(), updated_at TIMESTAMPTZ DEFAULT NOW()
);
CREATE TABLE batch_channels (
  batch_id TEXT NOT NULL REFERENCES batches(id), channel_id TEXT NOT NULL REFERENCES channels(id)
);
CREATE TABLE campaigns (
  id TEXT PRIMARY KEY, name TEXT, description TEXT, batch_id TEXT REFERENCES batches(id),
  template_id TEXT REFERENCES templates(id), params JSONB, mode TEXT, delivery_rate INTEGER, retry_limit INTEGER,
  status TEXT, progress INTEGER, total_jobs INTEGER, created_at TIMESTAMPTZ DEFAULT NOW(), updated_at TIMESTAMPTZ,
  started_at TIMESTAMPTZ, completed_at TIMESTAMPTZ,
  created_by_id TEXT CONSTRAINT campaigns_created_by_id_fkey REFERENCES users(id)
);
CREATE TABLE jobs (
  id TEXT PRIMARY KEY,
  campaign_id TEXT NOT NULL,
  channel_id TEXT NOT NULL,
  status TEXT NOT NULL,
  attempts INTEGER DEFAULT 0,
  error_message TEXT,
  created_at TIMESTAMPTZ DEFAULT NOW(),
  started_at TIMESTAMPTZ,
  sent_at TIMESTAMPTZ,
  failed_at TIMESTAMPTZ,
  FOREIGN KEY (campaign_id) REFERENCES campaigns(id) ON DELETE CASCADE,
  FOREIGN KEY (channel_id) REFERENCES channels(id)
);
CREATE INDEX idx_jobs_campaign_status ON jobs(campaign_id, status);
CREATE INDEX idx_jobs_channel ON jobs(channel_id);
CREATE INDEX idx_jobs_status ON jobs(status);
CREATE INDEX idx_campaigns_status ON campaigns(status);
CREATE INDEX idx_channels_is_active ON channels(is_active);
"""
BULL_JOB_ID = """ALTER TABLE jobs ADD COLUMN "bullJobId" TEXT"""

LEGAL = """
INSERT INTO users VALUES ('u1', 'ann');
INSERT INTO batches VALUES ('b1', 'news');
INSERT INTO templates VALUES ('t1', 'hello', 'Hello {username}', NULL, NULL),
  ('t2', 'photo', 'Look', 'PHOTO', 'https://example.com/a.jpg');
INSERT INTO channels (id, username, category) SELECT 'ch' || i, '@channel' || i, 'tea' FROM generate_series(1, 9) i;
INSERT INTO batch_channels SELECT 'b1', 'ch' || i FROM generate_series(1, 9) i;
INSERT INTO campaigns (id, name, batch_id, template_id, params, mode, delivery_rate, retry_limit, status, progress,
    total_jobs, created_by_id)
VALUES ('queued', 'queued', 'b1', 't1', '{}', 'LIVE', 20, 3, 'QUEUED', 0, 0, 'u1'),
  ('running', 'running', 'b1', 't1', '{}', 'LIVE', 20, 3, 'RUNNING', 50, 4, 'u1'),
  ('paused', 'paused', 'b1', 't1', '{}', 'TEST', 20, 3, 'PAUSED', 0, 1, NULL),
  ('completed', 'completed', 'b1', 't1', '{}', 'LIVE', 20, 3, 'COMPLETED', 100, 3, NULL),
  ('failed', 'failed', 'b1', 't1', '{}', 'LIVE', 20, 3, 'FAILED', 0, 0, NULL),
  ('cancelled', 'cancelled', 'b1', 't1', '{}', 'LIVE', 20, 3, 'CANCELLED', 0, 0, NULL);
INSERT INTO jobs (id, campaign_id, channel_id, status, attempts, error_message, started_at, sent_at, failed_at) VALUES
  ('j1', 'running', 'ch1', 'QUEUED', 0, NULL, NULL, NULL, NULL),
  ('j2', 'running', 'ch2', 'SENDING', 1, NULL, '2025-01-01', NULL, NULL),
  ('j3', 'running', 'ch3', 'SENT', 1, NULL, '2025-01-01', '2025-01-01', NULL),
  ('j4', 'running', 'ch4', 'FAILED', 4, 'PEER_BLOCKED', '2025-01-01', NULL, '2025-01-01'),
  ('j5', 'paused', 'ch1', 'QUEUED', 0, NULL, NULL, NULL, NULL),
  ('j6', 'completed', 'ch1', 'SENT', 1, NULL, NULL, '2025-01-01', NULL);
"""
"""The campaign `completed` has lost two sent jobs to the specification's cleanup."""

ILLEGAL = """
INSERT INTO users VALUES ('u2', NULL);
INSERT INTO batches VALUES ('b2', NULL);
INSERT INTO templates VALUES ('t3', NULL, NULL, 'PHOTO', NULL), ('t4', 'gif', 'x', 'GIF', 'https://example.com/a.gif');
INSERT INTO channels (id, username, is_active, error_count, created_at) VALUES
  ('x1', '@tired', true, 7, now()), ('x2', '@negative', true, -1, now()), ('x3', '@neither', NULL, NULL, now()),
  ('x4', 'https://t.me/linked', true, 0, now()), ('x5', 'not a name', true, 0, now()),
  ('x6', '@twice', true, 0, '2024-01-01'), ('x7', '@Twice', true, 0, '2025-01-01'), ('x8', NULL, true, 0, now());
INSERT INTO batch_channels VALUES ('b1', 'ch1');
INSERT INTO campaigns (id, name, mode, delivery_rate, retry_limit, status, progress, total_jobs) VALUES
  ('y1', NULL, 'live', 0, -2, 'RUNNING', NULL, NULL), ('y2', 'odd', 'DRY', NULL, NULL, 'ARCHIVED', 250, -1),
  ('y3', 'all done', 'LIVE', 20, 3, 'RUNNING', 50, 2);
INSERT INTO jobs (id, campaign_id, channel_id, status, attempts, error_message, sent_at, failed_at) VALUES
  ('z1', 'y1', 'ch1', 'FAILED', 1, NULL, NULL, '2025-01-01'),
  ('z2', 'y1', 'ch2', 'SENT', 1, NULL, '2025-01-01', '2025-01-01'),
  ('z3', 'y1', 'ch3', 'QUEUED', 9, NULL, NULL, NULL), ('z4', 'y1', 'ch4', 'queued', NULL, NULL, NULL, NULL),
  ('z5', 'y1', 'ch5', 'LOST', -1, NULL, NULL, NULL), ('z6', 'y1', 'ch6', 'SENT', 1, NULL, '2025-01-01', NULL),
  ('z7', 'y1', 'ch6', 'QUEUED', 0, NULL, NULL, NULL),
  ('z8', 'y3', 'ch1', 'SENT', 1, NULL, '2025-01-01', NULL), ('z9', 'y3', 'ch2', 'FAILED', 1, 'no', NULL, '2025-01-01');
"""

COUNTED = ("users", "batches", "templates", "channels", "campaigns", "jobs")
"""The tables of which no row may be lost."""
