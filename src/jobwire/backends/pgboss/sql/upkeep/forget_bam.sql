-- Forget index builds that were still to come for a table that goes.
DELETE FROM {schema}.bam WHERE table_name = :table AND status IN ('pending', 'in_progress', 'failed')
