-- Makes the schema of side data: what pg-boss has no columns for.
CREATE SCHEMA IF NOT EXISTS {side};

-- Queues that are paused for jobwire's workers.
CREATE TABLE IF NOT EXISTS {side}.held (
    name text PRIMARY KEY,
    since timestamptz NOT NULL DEFAULT now()
);

-- Rate limits: the number of jobs that have started in the present window. The key '' is that of the whole queue.
CREATE TABLE IF NOT EXISTS {side}.pace (
    name text NOT NULL,
    key text NOT NULL,
    until timestamptz NOT NULL,
    started integer NOT NULL,
    PRIMARY KEY (name, key)
);

-- The number of times that each job was recovered.
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
