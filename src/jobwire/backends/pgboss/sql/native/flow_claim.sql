-- Claims the turn to look after flows, if it is due.
UPDATE {schema}.version SET flow_on = {now}
WHERE flow_on IS NULL OR flow_on <= {now} - :every::float8 * interval '1 second'
RETURNING 1
