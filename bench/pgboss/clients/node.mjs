// Node pg-boss as a contender: node node.mjs <local workers> <order as JSON>. Prints one line of JSON.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { resolve } from "node:path";

const peers = resolve(import.meta.dirname, "../../../tests/interop/node-pgboss/");
const require = createRequire(`${peers}/`);
const { PgBoss } = await import(pathToFileURL(require.resolve("pg-boss")));

const [, , locals, text] = process.argv;
const order = JSON.parse(text);
const { jobs, kind, concurrency } = order;
const now = () => performance.now() / 1000;
const pause = (ms) => new Promise((go) => setTimeout(go, ms));

const boss = new PgBoss({ connectionString: order.url, supervise: false, schedule: false, useListenNotify: kind === "latency", max: 10,
  queueCacheIntervalSeconds: 1 });
boss.on("error", (error) => console.error(error));
await boss.start();
await boss.createQueue("bench", { notify: true });

const fill = async () => {
  for (let first = 0; first < jobs; first += 1000)
    await boss.insert("bench", Array.from({ length: Math.min(1000, jobs - first) }, (_, n) => ({ data: { n: first + n } })));
};
const timed = async (work) => {
  const began = now();
  await work();
  return { seconds: now() - began };
};

const kinds = {
  send: () => timed(async () => { for (let n = 0; n < jobs; n++) await boss.send("bench", { n }); }),
  send_concurrent: () => timed(() => Promise.all(Array.from({ length: jobs }, (_, n) => boss.send("bench", { n })))),
  bulk: () => timed(fill),
  drain: async () => {
    await fill();
    const workers = Math.min(Number(locals), concurrency);
    const batchSize = Math.ceil(concurrency / workers);
    if (batchSize === 1) {
      await boss.supervise("bench");
      await pause(2500);
    }
    return timed(() => new Promise((go) => {
      let left = jobs;
      const handler = async (batch) => { left -= batch.length; if (left <= 0) go(); };
      const options = { batchSize, localConcurrency: workers, pollingIntervalSeconds: 0.5 };
      // One job at a time never counts as a full batch; there the backlog that the monitor saw opens the throttle.
      boss.work("bench", { ...options, ...(batchSize > 1 ? { burstWhenBatchFull: true } : { burstWhenReadyExceeds: 1 }) }, handler);
    }));
  },
  latency: async () => {
    let heard;
    await boss.work("bench", { batchSize: 1, pollingIntervalSeconds: 0.5 }, async () => heard(now()));
    await pause(1000);
    const waits = [];
    for (let n = 0; n < jobs + 20; n++) {
      await pause(20);
      const started = new Promise((go) => { heard = go; });
      const began = now();
      await boss.send("bench", { n });
      waits.push((await started) - began);
    }
    return { waits: waits.slice(20) };
  },
};

await boss.send("bench", { n: -1 });
await boss.deleteQueuedJobs("bench");
console.log(JSON.stringify(await kinds[kind]()));
await boss.stop({ graceful: false }).catch(() => {});
process.exit(0);
