from pipeline.written_lake import fill

fill(".jobwire/lake")

from jobwire.pipeline.lake import run_log
from jobwire.pipeline.lake.files import LakeFiles
from jobwire.pipeline.lake.lake import Lake

lake = Lake(".jobwire/lake")
lake.files.write("checkpoints/built.json", lake.bronze_state())
with run_log.recorded(LakeFiles(".jobwire/lake"), "ingest"):
    pass
