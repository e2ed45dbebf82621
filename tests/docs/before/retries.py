from jobwire.sync import Queue

with Queue("charge") as charge:
    charge.add(1)
