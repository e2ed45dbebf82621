-- Whether anything has happened to a job of the queue since a time.
SELECT
    EXISTS (SELECT FROM {job} j WHERE j.name = $1 AND j.created_on > {from})
    OR EXISTS (SELECT FROM {job} j WHERE j.name = $1 AND j.completed_on > {from})
    OR EXISTS (SELECT FROM {job} j WHERE j.name = $1 AND j.state IN ('created', 'retry', 'active') AND j.started_on > {from})
    OR EXISTS (SELECT FROM {job} j WHERE j.name = $1 AND j.state = 'retry' AND {retried} > {from} AND {retried} <= {until})
