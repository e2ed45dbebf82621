INSERT INTO {schema}.campaigns
    (id, name, description, batch_id, template_id, params, mode, delivery_rate, retry_limit, created_by_id)
VALUES (%(id)s, %(name)s, %(description)s, %(batch_id)s, %(template_id)s, %(params)s, %(mode)s, %(delivery_rate)s,
    %(retry_limit)s, %(created_by_id)s)
RETURNING {columns}
