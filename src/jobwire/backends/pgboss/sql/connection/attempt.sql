-- Makes the table of the attempts that workers remember: failed ones that another followed, of which pg-boss keeps nothing.
CREATE TABLE IF NOT EXISTS {side}.attempt (
    name text NOT NULL,
    id uuid NOT NULL,
    run integer NOT NULL, -- from 0, as pg-boss's retry_count
    started_on timestamptz NOT NULL,
    ended_on timestamptz NOT NULL,
    due_on timestamptz NOT NULL, -- when the next attempt becomes ready
    keep_until timestamptz NOT NULL,
    worker text,
    kind text,
    error text,
    PRIMARY KEY (name, id, started_on)
);
CREATE INDEX IF NOT EXISTS attempt_ended_on ON {side}.attempt (name, ended_on);
