INSERT INTO {schema}.batches (id, name) VALUES (%(id)s, %(name)s) RETURNING {columns}
