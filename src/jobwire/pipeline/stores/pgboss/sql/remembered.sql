    UNION ALL
    SELECT j.id::text, j.run, 'active', j.started_on,
        '{{"retry_count":' || j.run || coalesce(',"worker":' || to_json(j.worker), '')
        || coalesce(',"ready":' || to_json(b.due_on), '') || '}}'
    FROM {side}.attempt j LEFT JOIN {side}.attempt b ON b.name = j.name AND b.id = j.id AND b.run = j.run - 1
        AND b.due_on <= j.started_on
    WHERE {condition} AND j.ended_on > {from} AND j.ended_on <= {until}
    UNION ALL
    SELECT j.id::text, j.run, CASE WHEN j.kind = 'stalled' AND j.error IS NULL THEN 'stalled' ELSE 'retry' END, j.ended_on,
        '{{"retry_count":' || j.run || ',"started_on":' || to_json(j.started_on) || ',"start_after":' || to_json(j.due_on)
        || coalesce(',"worker":' || to_json(j.worker), '') || coalesce(',"name":' || to_json(j.kind), '')
        || coalesce(',"error":' || to_json(j.error), '') || ',"estimated":false}}'
    FROM {side}.attempt j
    WHERE {condition} AND j.ended_on > {from} AND j.ended_on <= {until}
