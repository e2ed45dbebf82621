// A Node BullMQ client as a contender: node node.mjs <package> <order as JSON>. Prints one line of JSON.
import { createRequire } from "node:module";
import { setTimeout as sleep } from "node:timers/promises";

const [, , peer, text] = process.argv;
const order = JSON.parse(text);
// The packages are those of the interop tests.
const require = createRequire(new URL("../../../tests/interop/node/package.json", import.meta.url));
const { Queue, Worker } = require(peer);
const { hostname: host, port, password } = new URL(order.url);
const options = { connection: { host, port: Number(port), password }, prefix: order.prefix };

const openQueue = async () => {
  const queue = new Queue(order.queue, options);
  await queue.waitUntilReady();
  return queue;
};

const timed = async (work) => {
  const cpu = process.cpuUsage();
  const began = performance.now();
  await work();
  const seconds = (performance.now() - began) / 1000;
  const { user, system } = process.cpuUsage(cpu);
  return { seconds, cpu: (user + system) / 1e6 };
};

const scenarios = {
  bulk_add: async () => {
    const queue = await openQueue();
    await queue.addBulk([{ name: "job", data: { n: -1 } }]);
    return timed(async () => {
      for (let first = 0; first < order.jobs; first += order.chunk) {
        const size = Math.min(order.chunk, order.jobs - first);
        await queue.addBulk(Array.from({ length: size }, (_, n) => ({ name: "job", data: { n: first + n } })));
      }
    });
  },

  concurrent_add: async () => {
    const queue = await openQueue();
    await queue.add("job", { n: -1 });
    return timed(() => Promise.all(Array.from({ length: order.jobs }, (_, n) => queue.add("job", { n }))));
  },

  process: async () => {
    const settings = { ...options, concurrency: order.concurrency, autorun: false };
    const worker = new Worker(order.queue, async () => null, settings);
    await worker.waitUntilReady();
    return timed(
      () =>
        new Promise((done) => {
          let completed = 0;
          worker.on("completed", () => {
            completed += 1;
            if (completed === order.jobs) done();
          });
          worker.run();
        }),
    );
  },

  latency: async () => {
    const queue = await openQueue();
    let started, completed;
    const worker = new Worker(order.queue, async () => started(performance.now()), options);
    worker.on("completed", () => completed());
    await worker.waitUntilReady();
    const waits = [];
    for (let n = 0; n < order.jobs + order.warmup; n += 1) {
      const start = new Promise((go) => (started = go));
      const end = new Promise((go) => (completed = go));
      await sleep(order.idle * 1000);
      const began = performance.now();
      await queue.add("job", { n });
      waits.push(((await start) - began) / 1000);
      await end;
    }
    return { waits: waits.slice(order.warmup) };
  },
};

const result = await scenarios[order.scenario]();
process.stdout.write(JSON.stringify(result) + "\n", () => process.exit(0));
