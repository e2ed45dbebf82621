-- Make a queue by pg-boss's own function; one that exists stays as it is.
SELECT {schema}.create_queue(:queue, :options::jsonb)
