INSERT INTO {schema}.templates (id, name, content, media_type, media_url)
VALUES (%(id)s, %(name)s, %(content)s, %(media_type)s, %(media_url)s) RETURNING {columns}
