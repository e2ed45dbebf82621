SELECT min(paused_until) FROM {schema}.campaigns WHERE status = 'PAUSED'
