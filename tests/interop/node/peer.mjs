// A Node BullMQ client that does what it is told: one JSON command per line on stdin, one JSON answer per line on stdout.
//
//   node peer.mjs <package: bullmq | bullmq-6> <redis url>
//
//   -> {"id": 1, "do": "add", "prefix": "t1", "queue": "letters", "name": "a", "data": 1}
//   <- {"id": 1, "ok": "1"}        or {"id": 1, "error": "...", "code": -8}
//
// Commands run side by side; answers come as they are ready. The process ends with its stdin.
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { processors } from "./processors.mjs";
import { runScript } from "./scripts.mjs";

const [, , peer, url] = process.argv;
const require = createRequire(import.meta.url);
const bull = require(peer);
const { hostname: host, port, password } = new URL(url);
const connection = { host, port: Number(port), password };

const queues = new Map();
const listeners = new Map();
const flows = new Map();
const workers = new Map();

const once = (map, key, make) => {
  if (!map.has(key)) map.set(key, make());
  return map.get(key);
};
const queueOf = ({ prefix, queue }) =>
  once(queues, `${prefix}:${queue}`, () => new bull.Queue(queue, { connection, prefix }));
// From the stream's beginning: QueueEvents is "ready" before it reads, and what ends in between would go unheard.
const listenerOf = ({ prefix, queue }) =>
  once(listeners, `${prefix}:${queue}`, () => new bull.QueueEvents(queue, { connection, prefix, lastEventId: '0-0' }));
const flowOf = ({ prefix }) => once(flows, prefix, () => new bull.FlowProducer({ connection, prefix }));

const jobOf = async (command) => {
  const job = await queueOf(command).getJob(command.job);
  if (!job) throw new Error(`no job ${command.job}`);
  return job;
};

const whole = async (queue, job, state) => ({
  id: job.id,
  name: job.name,
  data: job.data,
  opts: job.opts,
  state,
  priority: job.priority,
  delay: job.delay,
  timestamp: job.timestamp,
  processedOn: job.processedOn ?? null,
  finishedOn: job.finishedOn ?? null,
  processedBy: job.processedBy ?? null,
  progress: job.progress,
  returnvalue: job.returnvalue ?? null,
  failedReason: job.failedReason ?? null,
  stacktrace: job.stacktrace ?? [],
  attemptsMade: job.attemptsMade,
  attemptsStarted: job.attemptsStarted,
  stalledCounter: job.stalledCounter,
  deduplicationId: job.deduplicationId ?? null,
  logs: (await queue.getJobLogs(job.id)).logs,
});

const ids = ({ job, children = [] }) => ({ id: job.id, queue: job.queueName, children: children.map(ids) });

// BullMQ's telemetry, as far as it shows which trace a run belongs to: a context is the headers that were read.
const telemetryInto = (traces) => ({
  tracer: {
    startSpan: (name, _, context) => {
      if (name.startsWith("process ")) traces.push(context ?? null);
      const nothing = () => {};
      return {
        setSpanOnContext: (one) => one,
        setAttribute: nothing,
        setAttributes: nothing,
        addEvent: nothing,
        recordException: nothing,
        end: nothing,
      };
    },
  },
  contextManager: {
    with: (_, run) => run(),
    active: () => ({}),
    getMetadata: (context) => JSON.stringify(context),
    fromMetadata: (_, metadata) => JSON.parse(metadata),
  },
});

const startWorker = async ({ prefix, queue, label, processor, settings = {}, options = {} }) => {
  const record = { label, bull, runs: [], errors: [], traces: [] };
  const run = processors[processor];
  if (!run) throw new Error(`no processor ${processor}`);
  const handler = (job) => {
    record.runs.push(job.id);
    return run(job, record, settings);
  };
  record.worker = new bull.Worker(queue, handler, {
    connection,
    prefix,
    ...options,
    ...(settings.traced && { telemetry: telemetryInto(record.traces) }),
  });
  record.worker.on("error", (error) => record.errors.push(error.message));
  await record.worker.waitUntilReady();
  const handle = workers.size + 1;
  workers.set(handle, record);
  return handle;
};

const commands = {
  ping: async () => ({ peer, pid: process.pid }),
  add: async (command) => (await queueOf(command).add(command.name, command.data, command.opts)).id,
  addBulk: async (command) => (await queueOf(command).addBulk(command.jobs)).map((job) => job.id),
  addFlow: async (command) => ids(await flowOf(command).add(command.flow)),
  schedule: async (command) =>
    (await queueOf(command).upsertJobScheduler(command.key, command.repeat, command.template)).id,
  unschedule: async (command) => queueOf(command).removeJobScheduler(command.key),
  schedulers: async (command) => queueOf(command).getJobSchedulers(),
  getJob: async (command) => {
    const queue = queueOf(command);
    // The state first: the fields then are at least as new, and a job seen as finished has its result.
    const state = await queue.getJobState(command.job);
    const job = await queue.getJob(command.job);
    return job ? whole(queue, job, state) : null;
  },
  getJobs: async ({ types, start, end, asc, ...command }) =>
    (await queueOf(command).getJobs(types, start, end, asc)).map((job) => job.id),
  getOf: async ({ method, start, end, ...command }) =>
    (await queueOf(command)[method](start, end)).map((job) => job.id),
  counts: async (command) => queueOf(command).getJobCounts(),
  pause: async (command) => queueOf(command).pause(),
  resume: async (command) => queueOf(command).resume(),
  isPaused: async (command) => queueOf(command).isPaused(),
  obliterate: async (command) => queueOf(command).obliterate({ force: command.force ?? false }),
  getWorkers: async (command) => queueOf(command).getWorkers(),
  setGlobalConcurrency: async (command) => queueOf(command).setGlobalConcurrency(command.concurrency),
  promote: async (command) => (await jobOf(command)).promote(),
  retry: async (command) => (await jobOf(command)).retry(command.state),
  remove: async (command) => queueOf(command).remove(command.job),
  waitUntilFinished: async (command) => {
    const listener = listenerOf(command);
    await listener.waitUntilReady();
    return (await jobOf(command)).waitUntilFinished(listener, command.ms);
  },
  script: async (command) => runScript(bull, connection, require, command),
  work: startWorker,
  runs: async ({ worker }) => workers.get(worker).runs,
  traces: async ({ worker }) => workers.get(worker).traces,
  stopWorker: async ({ worker, force = false }) => {
    const { worker: running, errors } = workers.get(worker);
    await running.close(force);
    return errors;
  },
};

const answer = (message) => process.stdout.write(JSON.stringify(message) + "\n");

const obey = async (line) => {
  const { id, do: verb, ...command } = JSON.parse(line);
  try {
    const ok = await commands[verb](command);
    answer({ id, ok: ok ?? null });
  } catch (error) {
    answer({ id, error: error.message, code: error.code ?? null });
  }
};

const lines = createInterface({ input: process.stdin, crlfDelay: Infinity });
lines.on("line", obey);
lines.on("close", () => process.exit(0));
