// A Node pg-boss client that does what it is told: one JSON command per line on stdin, one JSON answer per line on stdout.
//
//   node peer.mjs <package> <postgres url>
//
//   -> {"id": 1, "do": "call", "schema": "t1", "method": "send", "args": ["letters", {"to": "a"}]}
//   <- {"id": 1, "ok": "0198…"}        or {"id": 1, "error": "..."}
//
// `boss` options come with the first command of a schema and instance; a quiet instance is the default.
import { createInterface } from "node:readline";

const [, , name, url] = process.argv;
const library = await import(name);
const PgBoss = library.PgBoss ?? library.default;

const bosses = new Map();
const workers = new Map();

// A propagator whose current trace always has these headers.
const propagatorOf = (headers) => ({
  inject: (_, carrier, setter) => Object.entries(headers).forEach(([name, value]) => setter.set(carrier, name, value)),
  extract: (context) => context,
  fields: () => Object.keys(headers),
});
const bossOf = ({ schema, instance = "quiet", options = {} }) => {
  const key = `${schema}:${instance}`;
  if (!bosses.has(key)) {
    const { headers, ...rest } = options;
    const telemetry = headers && { openTelemetry: { propagateContext: true, propagator: propagatorOf(headers) } };
    const always = { connectionString: url, schema, supervise: false, schedule: false, max: 5 };
    const boss = new PgBoss({ ...always, ...rest, ...telemetry });
    const heard = [];
    boss.on("error", (error) => heard.push(error.message));
    boss.on("warning", (warning) => heard.push(warning));
    bosses.set(key, { boss, heard, started: boss.start() });
  }
  return bosses.get(key);
};
const started = async (command) => {
  const entry = bossOf(command);
  await entry.started;
  return entry;
};

const behaviours = {
  double: async (job) => ({ doubled: job.data.n * 2 }),
  echo: async (job) => job.data,
  text: async () => "a text",
  fail: async (job) => {
    throw new Error(`no luck with ${JSON.stringify(job.data)}`);
  },
  hang: async () => new Promise(() => {}),
  // The message worker of an application with campaigns: it finishes a message by updates of the table of jobs.
  deliver: async ({ data }, { boss, tables, refuse = [], postpone = [] }) => {
    const update = (table, assignments, id, ...values) =>
      boss.getDb().executeSql(`UPDATE ${tables}.${table} SET ${assignments} WHERE id = $1`, [id, ...values]);
    const now = () => new Date().toISOString();
    await update("jobs", "status = 'SENDING', started_at = $2, attempts = attempts + 1", data.jobId, now());
    if (postpone.includes(data.channelUsername)) {
      await update("jobs", "status = 'QUEUED'", data.jobId);
      throw new Error("later");
    }
    if (!refuse.includes(data.channelUsername)) {
      await update("jobs", "status = 'SENT', sent_at = $2", data.jobId, now());
      return;
    }
    await update("jobs", "status = 'FAILED', failed_at = $2, error_message = $3", data.jobId, now(), "it is closed");
    await update("channels", "error_count = error_count + 1, last_error = $2", data.channelId, "it is closed");
  },
};

const commands = {
  start: async (command) => {
    await started(command);
  },
  call: async (command) => {
    const { boss } = await started(command);
    return boss[command.method](...(command.args ?? []));
  },
  heard: async (command) => (await started(command)).heard,
  work: async (command) => {
    const { boss } = await started(command);
    const record = { runs: [], received: [] };
    const id = await boss.work(command.queue, command.work ?? {}, async (jobs) => {
      let last;
      for (const job of jobs) {
        record.runs.push(job.id);
        record.received.push(job.data);
        last = await behaviours[command.behaviour](job, { ...command, boss });
      }
      return last;
    });
    workers.set(id, { ...record, boss, queue: command.queue });
    return id;
  },
  runs: async ({ worker }) => workers.get(worker).runs,
  received: async ({ worker }) => workers.get(worker).received,
  offWork: async ({ worker }) => {
    const { boss, queue } = workers.get(worker);
    await boss.offWork(queue, { id: worker });
  },
  stop: async (command) => {
    const key = `${command.schema}:${command.instance ?? "quiet"}`;
    const entry = bosses.get(key);
    if (!entry) return;
    bosses.delete(key);
    await entry.boss.stop({ graceful: command.graceful ?? true, timeout: 5000 });
  },
};

const answer = (message) => process.stdout.write(JSON.stringify(message) + "\n");

const obey = async (line) => {
  const { id, do: verb, ...command } = JSON.parse(line);
  try {
    answer({ id, ok: (await commands[verb](command)) ?? null });
  } catch (error) {
    answer({ id, error: error.message });
  }
};

const lines = createInterface({ input: process.stdin, crlfDelay: Infinity });
lines.on("line", obey);
lines.on("close", () => process.exit(0));
