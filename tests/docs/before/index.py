from jobwire.sync import Worker

background = [Worker("emails", lambda job: {"sent": job.data["to"]})]
