-- Makes a queue by pg-boss's own function, which leaves one that exists as it is.
SELECT {schema}.create_queue(:queue, :options::jsonb)
