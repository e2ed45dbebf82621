INSERT INTO {schema}.users (id, username) VALUES (%(id)s, %(username)s) RETURNING {columns}
