-- The tables of pg-boss's schema 46, as Node pg-boss 12.38 expects to find them.
CREATE SCHEMA IF NOT EXISTS {schema};

CREATE TYPE {schema}.job_state AS ENUM ('created', 'retry', 'active', 'completed', 'cancelled', 'failed');

CREATE TABLE {schema}.version (
    version integer PRIMARY KEY,
    cron_on timestamptz,
    bam_on timestamptz,
    flow_on timestamptz,
    reindex_on timestamptz,
    monitor_backoff_on timestamptz
);

CREATE TABLE {schema}.queue (
    name text NOT NULL,
    policy text NOT NULL,
    retry_limit integer NOT NULL,
    retry_delay integer NOT NULL,
    retry_backoff boolean NOT NULL,
    retry_delay_max integer,
    expire_seconds integer NOT NULL,
    retention_seconds integer NOT NULL,
    deletion_seconds integer NOT NULL,
    dead_letter text REFERENCES {schema}.queue (name) CHECK (dead_letter IS DISTINCT FROM name),
    partition boolean NOT NULL,
    table_name text NOT NULL,
    deferred_count integer NOT NULL DEFAULT 0,
    blocked_count integer NOT NULL DEFAULT 0,
    queued_count integer NOT NULL DEFAULT 0,
    ready_count integer NOT NULL DEFAULT 0,
    warning_queued integer NOT NULL DEFAULT 0,
    active_count integer NOT NULL DEFAULT 0,
    failed_count integer NOT NULL DEFAULT 0,
    total_count integer NOT NULL DEFAULT 0,
    retained_count integer,
    retained_on timestamptz,
    created_delta integer NOT NULL DEFAULT 0,
    completed_delta integer NOT NULL DEFAULT 0,
    failed_delta integer NOT NULL DEFAULT 0,
    delta_on timestamptz,
    delta_seconds integer,
    wait_bins integer[],
    run_bins integer[],
    ready_oldest_seconds integer,
    ready_history integer[] NOT NULL DEFAULT '{{}}',
    heartbeat_seconds integer,
    notify boolean NOT NULL DEFAULT false,
    singletons_active text[],
    monitor_claim_on timestamptz,
    monitor_on timestamptz,
    maintain_on timestamptz,
    created_on timestamptz NOT NULL DEFAULT now(),
    updated_on timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (name)
);

CREATE TABLE {schema}.schedule (
    name text REFERENCES {schema}.queue (name) ON DELETE CASCADE,
    key text NOT NULL DEFAULT '',
    kind text NOT NULL DEFAULT 'cron' CHECK (kind IN ('cron', 'rrule')),
    cron text NOT NULL,
    timezone text DEFAULT 'UTC',
    data jsonb,
    options jsonb,
    created_on timestamptz NOT NULL DEFAULT now(),
    updated_on timestamptz NOT NULL DEFAULT now(),
    last_job_id uuid,
    PRIMARY KEY (name, key)
);

CREATE TABLE {schema}.subscription (
    event text NOT NULL,
    name text NOT NULL REFERENCES {schema}.queue (name) ON DELETE CASCADE,
    created_on timestamptz NOT NULL DEFAULT now(),
    updated_on timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (event, name)
);

CREATE TABLE {schema}.job (
    id uuid NOT NULL DEFAULT gen_random_uuid(),
    name text NOT NULL,
    priority integer NOT NULL DEFAULT 0,
    data jsonb,
    state {schema}.job_state NOT NULL DEFAULT 'created',
    retry_limit integer NOT NULL DEFAULT 2,
    retry_count integer NOT NULL DEFAULT 0,
    retry_delay integer NOT NULL DEFAULT 0,
    retry_backoff boolean NOT NULL DEFAULT false,
    retry_delay_max integer,
    expire_seconds integer NOT NULL DEFAULT 900,
    deletion_seconds integer NOT NULL DEFAULT 604800,
    singleton_key text,
    singleton_on timestamp,
    group_id text,
    group_tier text,
    start_after timestamptz NOT NULL DEFAULT now(),
    created_on timestamptz NOT NULL DEFAULT now(),
    started_on timestamptz,
    completed_on timestamptz,
    keep_until timestamptz NOT NULL DEFAULT now() + interval '336 hours',
    output jsonb,
    dead_letter text,
    policy text,
    heartbeat_on timestamptz,
    heartbeat_seconds integer,
    blocked boolean NOT NULL DEFAULT false,
    blocking boolean NOT NULL DEFAULT false,
    pending_dependencies integer NOT NULL DEFAULT 0,
    source_name text,
    source_id uuid,
    source_created_on timestamptz,
    source_retry_count integer,
    source_output jsonb,
    source_root_id uuid,
    trace_context jsonb,
    upsert_by_key boolean
) PARTITION BY LIST (name);

ALTER TABLE {schema}.job ADD PRIMARY KEY (name, id);

CREATE TABLE {schema}.job_common (LIKE {schema}.job INCLUDING DEFAULTS);

CREATE TABLE {schema}.job_dependency (
    child_name text NOT NULL,
    child_id uuid NOT NULL,
    parent_name text NOT NULL,
    parent_id uuid NOT NULL,
    PRIMARY KEY (child_name, child_id, parent_name, parent_id)
);
CREATE INDEX job_dep_parent_idx ON {schema}.job_dependency (parent_name, parent_id);

CREATE TABLE {schema}.warning (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    type text NOT NULL,
    message text NOT NULL,
    data jsonb,
    created_on timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX warning_i1 ON {schema}.warning (created_on DESC);

CREATE TABLE {schema}.queue_stats (
    id uuid NOT NULL DEFAULT gen_random_uuid(),
    name text NOT NULL,
    deferred_count integer NOT NULL DEFAULT 0,
    queued_count integer NOT NULL DEFAULT 0,
    ready_count integer NOT NULL DEFAULT 0,
    active_count integer NOT NULL DEFAULT 0,
    failed_count integer NOT NULL DEFAULT 0,
    total_count integer NOT NULL DEFAULT 0,
    created_delta integer,
    completed_delta integer,
    failed_delta integer,
    delta_seconds integer,
    delta_on timestamptz,
    wait_bins integer[],
    run_bins integer[],
    ready_oldest_seconds integer,
    captured_on timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (id, captured_on)
) PARTITION BY RANGE (captured_on);
CREATE INDEX queue_stats_i1 ON {schema}.queue_stats (name, captured_on DESC)
    INCLUDE (deferred_count, queued_count, ready_count, active_count, failed_count, total_count);

CREATE TABLE {schema}.bam (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    name text NOT NULL,
    version integer NOT NULL,
    status text NOT NULL DEFAULT 'pending',
    queue text,
    table_name text NOT NULL,
    command text NOT NULL,
    error text,
    created_on timestamptz NOT NULL DEFAULT clock_timestamp(),
    started_on timestamptz,
    completed_on timestamptz
);

CREATE TABLE {schema}.instance (
    id uuid PRIMARY KEY,
    name text,
    host text NOT NULL,
    pid integer NOT NULL,
    version text NOT NULL,
    node_version text NOT NULL,
    application_name text,
    heartbeat_seconds integer NOT NULL,
    supervise boolean NOT NULL,
    schedule boolean NOT NULL,
    migrate boolean NOT NULL,
    persist_queue_stats boolean NOT NULL,
    persist_warnings boolean NOT NULL,
    pool_max integer,
    pool_total integer,
    pool_idle integer,
    pool_waiting integer,
    workers jsonb NOT NULL DEFAULT '[]',
    metrics jsonb,
    config jsonb NOT NULL DEFAULT '{{}}',
    crash_restarts integer NOT NULL DEFAULT 0,
    crash_restarts_since timestamptz,
    started_on timestamptz NOT NULL DEFAULT now(),
    heartbeat_on timestamptz NOT NULL DEFAULT now(),
    stopped_on timestamptz
);
