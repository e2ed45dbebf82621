// Steps of a scenario, run by the real BullMQ: one JSON line {clock, step: [verb, queue, ...args]} in, one line out.
//
//   node interpreter.mjs <package: bullmq | bullmq-6> <redis url>
//
// Time stands still at the clock of the last step, for everything in this process that asks for it.
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import path from "node:path";

const peers = path.join(path.dirname(fileURLToPath(import.meta.url)), "..", "interop", "node", "package.json");
const require = createRequire(peers);
const [, , packageName, url] = process.argv;

let clock = 0;
const RealDate = Date;
globalThis.Date = class extends RealDate {
  constructor(...args) {
    if (args.length) super(...args);
    else super(clock);
  }
  static now() {
    return clock;
  }
};

Math.random = () => 0.25; // jitter, the same on both sides

const bull = require(packageName);
const { Redis } = require("ioredis");
const connection = new Redis(url, { maxRetriesPerRequest: null });

let queues = new Map();
let workers = new Map();
let held = new Map(); // queue:id -> claims of the job, the newest last
let flow = null;
let claims = 0;

const queueOf = async (name) => {
  if (!queues.has(name)) {
    const queue = new bull.Queue(name, { connection });
    queue.on("error", () => {});
    await queue.waitUntilReady();
    await connection.ping(); // what the constructor writes is there now
    queues.set(name, queue);
  }
  return queues.get(name);
};
const makeWorker = async (name, options) => {
  await queueOf(name);
  // `strategy` n: a custom backoff waits n ms after the first failure, 2n after the second; -1 is no retry.
  const { strategy, ...rest } = options;
  const settings = strategy === undefined ? {} : { backoffStrategy: (n) => (strategy < 0 ? -1 : strategy * n) };
  const worker = new bull.Worker(name, null, { connection, autorun: false, settings, ...rest });
  worker.on("error", () => {});
  await worker.waitUntilReady();
  workers.set(name, worker);
  return worker;
};
const workerOf = async (name) => workers.get(name) ?? makeWorker(name, {});
const jobOf = async (name, id) => {
  const job = await bull.Job.fromId(await queueOf(name), id);
  if (!job) throw new Error(`no job ${id}`);
  return job;
};
const hold = (name, job, token) => {
  if (!job) return null;
  const key = `${name}:${job.id}`;
  if (!held.has(key)) held.set(key, []);
  // Why BullMQ's own worker would fail the job without running it.
  const doom = workers.get(name).getUnrecoverableErrorMessage(job) ?? null;
  held.get(key).push({ job, token, doom });
  return [job.id, doom];
};
// `id` is the newest claim of the job, `id~1` the one before.
const heldOf = (name, reference) => {
  const [id, back = "0"] = String(reference).split("~");
  const all = held.get(`${name}:${id}`) ?? [];
  const claim = all[all.length - 1 - Number(back)];
  if (!claim) throw new Error(`${reference} is not held`);
  return claim;
};
const claim = async (name) => {
  const token = `00000000-0000-4000-8000-000000000000:${claims++}`;
  const worker = await workerOf(name);
  worker.limitUntil = 0; // what it remembers of a rate limit is its own affair: another worker would ask the store
  return hold(name, await worker.getNextJob(token, { block: false }), token);
};
// Ends a run and, if asked, takes the next job: in the same call where BullMQ does so (it answers with an array), else
// in one of its own, as its worker's loop would.
const finish = async (name, reference, then, act) => {
  const { job, token } = heldOf(name, reference);
  const worker = await workerOf(name);
  let verdict = "done";
  let reply;
  let fetched = false;
  try {
    reply = await act(job, token, then === "next");
    fetched = Array.isArray(reply) || job.finishedOn !== undefined;
  } catch (error) {
    if (![-1, -2, -3, -6].includes(error.code)) throw error;
    verdict = "lost";
  }
  if (then !== "next") return [verdict, null];
  if (Array.isArray(reply)) {
    worker.updateDelays?.(reply[2], reply[3]);
    return [verdict, hold(name, await worker.nextJobFromJobData(reply[0], reply[1], token), token)];
  }
  return [verdict, fetched ? null : await claim(name)];
};

const tree = ({ name, queue = "q", opts = {}, data, children }) => ({
  name, queueName: queue, data, opts, children: children?.map(tree),
});
const parented = (opts = {}) =>
  opts.parent ? { ...opts, parent: { id: opts.parent.id, queue: `bull:${opts.parent.queue}` } } : opts;
const ids = ({ job, children = [] }) => [job.id, ...children.flatMap(ids)];
const dates = ({ startDate, endDate, ...rest }) => ({
  ...rest,
  ...(startDate === undefined ? {} : { startDate: clock + startDate }),
  ...(endDate === undefined ? {} : { endDate: clock + endDate }),
});

const verbs = {
  begin: async () => {
    await Promise.all([...workers.values()].map((worker) => worker.close(true)));
    await Promise.all([...queues.values()].map((queue) => queue.close()));
    [queues, workers, held, flow] = [new Map(), new Map(), new Map(), null];
  },
  add: async (q, name, opts, data = {}) => (await (await queueOf(q)).add(name, data, parented(opts))).id,
  bulk: async (q, ...jobs) =>
    (await (await queueOf(q)).addBulk(
      jobs.map(([name, opts, data = {}]) => ({ name, data, opts: parented(opts) })),
    )).map((job) => job.id),
  flow: async (q, root) => {
    flow ??= new bull.FlowProducer({ connection });
    return ids(await flow.add(tree(root)));
  },
  schedule: async (q, key, repeat, template = {}) =>
    (await (await queueOf(q)).upsertJobScheduler(key, dates(repeat), template))?.id ?? null,
  unschedule: async (q, key) => (await queueOf(q)).removeJobScheduler(key),
  worker: async (q, options) => void (await makeWorker(q, options)),
  claim,
  complete: async (q, id, value, then) =>
    finish(q, id, then, async (job, token, fetch) => {
      try {
        return await job.moveToCompleted(value, token, fetch);
      } catch (error) {
        // What BullMQ's own worker does when children keep a job from completing: the run has failed.
        if (![-4, -9].includes(error.code)) throw error;
        return job.moveToFailed(error, token, fetch);
      }
    }),
  fail: async (q, id, reason, how = "", then = "") =>
    finish(q, id, then, (job, token, fetch) =>
      job.moveToFailed(how === "final" ? new bull.UnrecoverableError(reason) : new Error(reason), token, fetch)),
  doom: async (q, id) =>
    finish(q, id, "", (job, token) => job.moveToFailed(new bull.UnrecoverableError(heldOf(q, id).doom), token, false)),
  release: async (q, id) => finish(q, id, "", (job, token) => job.moveToWait(token)),
  snooze: async (q, id, ms) => finish(q, id, "", (job, token) => job.moveToDelayed(clock + ms, token)),
  // Only for jobs with children: one without goes on running here, and is handed back by jobwire.
  park: async (q, id) => finish(q, id, "", (job, token) => job.moveToWaitingChildren(token)),
  throttled: async (q, id, ms) =>
    finish(q, id, "", async (job, token) => {
      await (await queueOf(q)).rateLimit(ms);
      return job.moveToWait(token);
    }),
  extend: async (q, id, ms) => {
    const { job, token } = heldOf(q, id);
    return Boolean(await job.extendLock(token, ms));
  },
  stalled: async (q) => {
    const found = [];
    const worker = await workerOf(q);
    const note = (id) => found.push(id);
    worker.on("stalled", note);
    await worker.moveStalledJobsToWait();
    worker.off("stalled", note);
    return found.sort();
  },
  progress: async (q, id, value) => void (await (await jobOf(q, id)).updateProgress(value)),
  log: async (q, id, line, keep = null) =>
    void (keep === null ? await (await jobOf(q, id)).log(line) : await (await queueOf(q)).addJobLog(id, line, keep)),
  pause: async (q) => (await queueOf(q)).pause(),
  resume: async (q) => (await queueOf(q)).resume(),
  promote: async (q, id) => (await jobOf(q, id)).promote(),
  retry: async (q, id) => {
    const job = await jobOf(q, id);
    return void (await job.retry((await job.getState()) === "completed" ? "completed" : "failed"));
  },
  remove: async (q, id, how = "") => void (await (await jobOf(q, id)).remove({ removeChildren: how !== "alone" })),
  data: async (q, id, data) => void (await (await jobOf(q, id)).updateData(data)),
  priority: async (q, id, priority, front = "") =>
    void (await (await jobOf(q, id)).changePriority({ priority, lifo: front === "front" })),
  delay: async (q, id, ms) => void (await (await jobOf(q, id)).changeDelay(ms)),
  clearlogs: async (q, id, keep = 0) => void (await (await jobOf(q, id)).clearLogs(keep || undefined)),
  drain: async (q, delayed = "") => void (await (await queueOf(q)).drain(delayed === "delayed")),
  clean: async (q, state, age = 0, limit = 0) => (await (await queueOf(q)).clean(age, limit, state)).sort(),
  obliterate: async (q, force = "") => void (await (await queueOf(q)).obliterate({ force: force === "force" })),
  retryall: async (q, state = "failed") => void (await (await queueOf(q)).retryJobs({ state })),
  promoteall: async (q) => void (await (await queueOf(q)).promoteJobs()),
  concurrency: async (q, n) => {
    const queue = await queueOf(q);
    return void (await (n === null ? queue.removeGlobalConcurrency() : queue.setGlobalConcurrency(n)));
  },
  rate: async (q, max, ms) => {
    const queue = await queueOf(q);
    return void (await (max === null ? queue.removeGlobalRateLimit() : queue.setGlobalRateLimit(max, ms)));
  },
  throttle: async (q, ms) => {
    const queue = await queueOf(q);
    return void (await (ms === 0 ? queue.removeRateLimitKey() : queue.rateLimit(ms)));
  },
  publish: async (q, eventName, fields = {}) => {
    await queueOf(q);
    const producer = new bull.QueueEventsProducer(q, { connection });
    return void (await producer.publishEvent({ eventName, ...fields }));
  },
  owner: async (q, key) => (await queueOf(q)).getDeduplicationJobId(key),
  free: async (q, key) => Boolean(await (await queueOf(q)).removeDeduplicationKey(key)),
  family: async (q, id) => {
    const job = await jobOf(q, id);
    const counts = await job.getDependenciesCount({ processed: true, unprocessed: true, ignored: true, failed: true });
    return [await job.getChildrenValues(), await job.getIgnoredChildrenFailures(), counts.unprocessed ?? 0,
      counts.failed ?? 0];
  },
  counts: async (q) => {
    const counts = await (await queueOf(q)).getJobCounts();
    return [counts.waiting + (counts.paused ?? 0) + counts.prioritized, counts.delayed, counts.active, counts.completed,
      counts.failed, counts["waiting-children"]];
  },
};

const lines = createInterface({ input: process.stdin, crlfDelay: Infinity });
for await (const line of lines) {
  const { clock: now, step: [verb, queue, ...args] } = JSON.parse(line);
  clock = now;
  let answer;
  try {
    answer = { ok: (await verbs[verb](queue, ...args)) ?? null };
  } catch (error) {
    answer = { refused: error.message, unknown: !(verb in verbs) };
  }
  process.stdout.write(JSON.stringify(answer) + "\n");
}
process.exit(0);
