-- The constraints and indexes of every job table, a line each: "policy: command". The shared table has all of them.
always: ALTER TABLE {schema}.job ADD PRIMARY KEY (name, id)
always: ALTER TABLE {schema}.job ADD CONSTRAINT q_fkey FOREIGN KEY (name) REFERENCES {schema}.queue (name) ON DELETE RESTRICT DEFERRABLE INITIALLY DEFERRED
always: ALTER TABLE {schema}.job ADD CONSTRAINT dlq_fkey FOREIGN KEY (dead_letter) REFERENCES {schema}.queue (name) ON DELETE RESTRICT DEFERRABLE INITIALLY DEFERRED
short: CREATE UNIQUE INDEX job_i1 ON {schema}.job (name, COALESCE(singleton_key, '')) WHERE state = 'created' AND policy = 'short'
singleton: CREATE UNIQUE INDEX job_i2 ON {schema}.job (name, COALESCE(singleton_key, '')) WHERE state = 'active' AND policy = 'singleton'
stately: CREATE UNIQUE INDEX job_i3 ON {schema}.job (name, state, COALESCE(singleton_key, '')) WHERE state <= 'active' AND policy = 'stately'
always: CREATE UNIQUE INDEX job_i4 ON {schema}.job (name, singleton_on, COALESCE(singleton_key, '')) WHERE state <> 'cancelled' AND singleton_on IS NOT NULL
exclusive: CREATE UNIQUE INDEX job_i6 ON {schema}.job (name, COALESCE(singleton_key, '')) WHERE state <= 'active' AND policy = 'exclusive'
always: CREATE INDEX job_i7 ON {schema}.job (name, group_id) WHERE state = 'active' AND group_id IS NOT NULL
key_strict_fifo: CREATE UNIQUE INDEX job_i8 ON {schema}.job (name, singleton_key) WHERE state IN ('active', 'retry', 'failed') AND policy = 'key_strict_fifo'
always: CREATE INDEX job_i9 ON {schema}.job (name, id) WHERE blocking AND state = 'completed'
key_strict_fifo: CREATE INDEX job_i10 ON {schema}.job (name, singleton_key, state DESC, created_on, id) INCLUDE (start_after) WHERE state < 'active' AND NOT blocked AND policy = 'key_strict_fifo'
always: CREATE INDEX job_i11 ON {schema}.job (name, priority DESC, created_on, start_after) WHERE state < 'active' AND NOT blocked
always: CREATE INDEX job_i12 ON {schema}.job (source_root_id) WHERE source_root_id IS NOT NULL
always: CREATE UNIQUE INDEX job_i13 ON {schema}.job (name, singleton_key) WHERE state = 'created' AND upsert_by_key
always: CREATE INDEX job_i14 ON {schema}.job (name, state, blocked, start_after) WHERE state IN ('created', 'retry', 'active', 'failed')
always: CREATE INDEX job_i15 ON {schema}.job (name, created_on)
always: CREATE INDEX job_i16 ON {schema}.job (name, completed_on) WHERE completed_on IS NOT NULL
always: CREATE INDEX job_i17 ON {schema}.job (name, singleton_key, created_on) WHERE state < 'active' AND singleton_key IS NOT NULL
key_strict_fifo: ALTER TABLE {schema}.job ADD CONSTRAINT job_key_strict_fifo_singleton_key_check CHECK (NOT (policy = 'key_strict_fifo' AND singleton_key IS NULL))
