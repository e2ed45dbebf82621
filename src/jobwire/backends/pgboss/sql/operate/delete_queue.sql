-- Deletes a queue with its jobs by pg-boss's own function.
SELECT {schema}.delete_queue(:queue)
