import os

import psycopg

DATABASE_URL = os.environ["JOBWIRE_URL"].removeprefix("pgboss+").partition("?")[0]
with psycopg.connect(DATABASE_URL, autocommit=True) as db:
    db.execute("create table if not exists orders (id serial primary key, item text, shipped boolean default false)")
