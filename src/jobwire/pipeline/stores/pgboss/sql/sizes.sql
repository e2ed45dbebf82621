-- How many rows each queue has of those that a condition lets through.
SELECT j.name, count(*) FROM {schema}.job j WHERE {condition} GROUP BY j.name
