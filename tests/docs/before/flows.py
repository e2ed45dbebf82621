from jobwire.sync import Worker

background = [Worker("books", lambda job: "bound"), Worker("pages", lambda job: job.data)]
