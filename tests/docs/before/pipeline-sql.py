from pipeline.written_lake import fill

fill(".jobwire/lake")
