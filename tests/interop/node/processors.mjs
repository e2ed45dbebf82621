// What a Node worker of the tests can be told to do with a job, by name. Each gets the job, the worker's record (its
// label, and the runs it has begun) and the options it was started with.
import { setTimeout as sleep } from "node:timers/promises";

export const processors = {
  // The result tells who ran the job and on what.
  echo: async (job, { label }) => ({ by: label, name: job.name, data: job.data }),

  // The data itself is the result.
  reflect: async (job) => job.data,

  // Fails the first `times` runs of a job, in whatever language they were, then completes.
  fail: async (job, { label }, { times }) => {
    if (job.attemptsMade < times) throw new Error(`${label} failed run ${job.attemptsMade + 1}`);
    return { by: label, run: job.attemptsMade + 1 };
  },

  // Fails for good, whatever attempts are left.
  refuse: async (job, { label, bull }) => {
    throw new bull.UnrecoverableError(`${label} refuses`);
  },

  slow: async (job, { label }, { ms }) => {
    await sleep(ms);
    return { by: label };
  },

  // Runs until somebody writes data into the job.
  untilData: async (job, { bull }) => {
    const seen = async () => (await bull.Job.fromId(job.queue, job.id)).data;
    while (!(await seen())) await sleep(5);
  },

  // Progress and log lines come from the data.
  report: async (job, { label }) => {
    for (const value of job.data.progress) await job.updateProgress(value);
    for (const line of job.data.lines) await job.log(line);
    return { by: label };
  },

  // Never ends by itself; the process is expected to be killed.
  hang: async () => new Promise(() => {}),

  crash: async () => process.kill(process.pid, "SIGKILL"),

  // For the parent of a flow: what its children returned, and why those failed whose failure it ignores. A parent
  // that runs while children are pending can't complete unless it gives them up.
  gather: async (job, { label }, { giveUpPending }) => {
    if (giveUpPending) await job.removeUnprocessedChildren();
    const values = Object.values(await job.getChildrenValues());
    const failures = Object.values(await job.getIgnoredChildrenFailures());
    return { by: label, values, failures };
  },
};
