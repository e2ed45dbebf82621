// A Node worker of BullMQ for faults: `node bullmq.mjs SETTINGS`, the same JSON as of worker_program.py, with `package`
// (bullmq or bullmq-6). It writes the same lines into the ledger, and closes at SIGTERM.
import { createRequire } from "node:module";
import { setTimeout as sleep } from "node:timers/promises";
import { openBook } from "./book.mjs";

const settings = JSON.parse(process.argv[2]);
const load = createRequire(new URL("../../interop/node/", import.meta.url));
const { Worker } = load(settings.package);
const write = openBook(settings);

// A URL of one server, of a sentinel and the name that it gives the server, or of the nodes of a cluster.
const url = /^bullmq\+(?<kind>\w+):\/\/(:(?<password>\w+)@)?(?<hosts>[^/]+)\/(?<path>[^?]*)\?prefix=(?<prefix>.+)$/;
const { kind, password, hosts, path, prefix } = settings.url.match(url).groups;
const nodes = hosts.split(",").map((one) => ({ host: one.split(":")[0], port: Number(one.split(":")[1]) }));
const patient = { password, maxRetriesPerRequest: null };
const connections = {
  redis: () => ({ ...nodes[0], ...patient }),
  sentinel: () => ({ sentinels: nodes, name: path.split("/")[0], ...patient }),
  cluster: () => new (load("ioredis").Cluster)(nodes, { redisOptions: patient }),
};

const handle = async (job, token) => {
  // Node's token belongs to the worker and a counter of its fetches: with the job's start it is one of this claim.
  const claim = `node:${token}:${job.processedOn}`;
  const about = { n: job.data.n, job: job.id, token: claim };
  write("started", { ...about, claimed: job.processedOn / 1000 });
  await sleep(Math.random() * settings.nap * 1000);
  if (job.data.kind === "poison" || (job.data.kind === "flaky" && job.attemptsMade === 0)) {
    write("ended", { ...about, detail: "raised" });
    throw new Error(`it must fail: ${claim}`);
  }
  write("ended", { ...about, detail: "returned" });
  return { n: job.data.n, token: claim };
};

const worker = new Worker("work", handle, {
  connection: connections[kind](),
  prefix,
  concurrency: settings.concurrency,
  lockDuration: settings.lease * 1000,
  stalledInterval: 1000,
  maxStalledCount: 1_000_000,
});
worker.on("error", (error) => console.error(error.message));
process.on("SIGTERM", async () => {
  await worker.close();
  process.exit(0);
});
