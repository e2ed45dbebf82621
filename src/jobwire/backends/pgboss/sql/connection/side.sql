-- What pg-boss has no place for, in a schema of jobwire's own beside it.
CREATE SCHEMA IF NOT EXISTS {side};

-- Queues that jobwire's workers must leave alone.
CREATE TABLE IF NOT EXISTS {side}.held (
    name text PRIMARY KEY,
    since timestamptz NOT NULL DEFAULT now()
);

-- Rate limits: how many jobs have started in the window that runs now. The key '' is the queue as a whole.
CREATE TABLE IF NOT EXISTS {side}.pace (
    name text NOT NULL,
    key text NOT NULL,
    until timestamptz NOT NULL,
    started integer NOT NULL,
    PRIMARY KEY (name, key)
);

-- How often a job was taken back from a worker that died.
CREATE TABLE IF NOT EXISTS {side}.stall (
    name text NOT NULL,
    id uuid NOT NULL,
    times integer NOT NULL,
    PRIMARY KEY (name, id)
);

-- Progress, as JSON text: jsonb would change its numbers and refuse some of its characters.
CREATE TABLE IF NOT EXISTS {side}.progress (
    name text NOT NULL,
    id uuid NOT NULL,
    value text NOT NULL,
    PRIMARY KEY (name, id)
);

CREATE TABLE IF NOT EXISTS {side}.log (
    name text NOT NULL,
    id uuid NOT NULL,
    line_no bigint GENERATED ALWAYS AS IDENTITY,
    line text NOT NULL,
    PRIMARY KEY (name, id, line_no)
);
