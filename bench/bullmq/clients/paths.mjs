// Node BullMQ on the paths beside plain jobs: node paths.mjs <package> <order as JSON>. Prints one line of JSON.
import { createRequire } from "node:module";

const [, , peer, text] = process.argv;
const order = JSON.parse(text);
const require = createRequire(new URL("../../../tests/interop/node/package.json", import.meta.url));
const { FlowProducer, Queue, Worker } = require(peer);
const { hostname: host, port, password } = new URL(order.url);
const connection = { host, port: Number(port), password };

const times = async (rounds, before, work) => {
  const seconds = [];
  for (let round = 0; round < rounds; round += 1) {
    await before();
    const began = performance.now();
    await work();
    seconds.push((performance.now() - began) / 1000);
  }
  return { seconds };
};
const once = (work) => times(1, async () => {}, work);
const runAll = async (queues, last, number) => {
  const workers = queues.map(
    (name) => new Worker(name, async () => null, { connection, concurrency: order.concurrency, autorun: false }),
  );
  await Promise.all(workers.map((worker) => worker.waitUntilReady()));
  return once(
    () =>
      new Promise((done) => {
        let left = number;
        workers[last].on("completed", () => {
          left -= 1;
          if (left === 0) done();
        });
        workers.forEach((worker) => worker.run());
      }),
  );
};
const idle = async () => {
  const worker = new Worker("bench", null, { connection, autorun: false });
  await worker.waitUntilReady();
  return worker;
};

const paths = {
  flow_add: async () => {
    const flows = new FlowProducer({ connection });
    const children = () => Array.from({ length: order.children }, (_, n) => ({ name: "leaf", queueName: "leaves", data: { n } }));
    const trees = Array.from({ length: order.jobs }, (_, n) => ({
      name: "root", queueName: "roots", data: { n }, children: children(),
    }));
    await flows.waitUntilReady?.();
    return once(async () => {
      for (let first = 0; first < trees.length; first += order.chunk) await flows.addBulk(trees.slice(first, first + order.chunk));
    });
  },
  flow_run: () => runAll(["leaves", "roots"], 1, order.jobs),
  schedule_put: async () => {
    const queue = new Queue("bench", { connection });
    await queue.waitUntilReady();
    return once(async () => {
      for (let first = 0; first < order.jobs; first += order.chunk) {
        const size = Math.min(order.chunk, order.jobs - first);
        await Promise.all(
          Array.from({ length: size }, (_, n) => queue.upsertJobScheduler(`s${first + n}`, { every: 3600000 }, { name: "n" })),
        );
      }
    });
  },
  schedule_run: () => runAll(["bench"], 0, order.jobs),
  stalled: async () => {
    const worker = await idle();
    const client = await worker.client;
    return times(order.rounds, () => client.del("bull:bench:stalled-check"), () => worker.moveStalledJobsToWait());
  },
  claim: async () => {
    const worker = await idle();
    return times(order.rounds, async () => {}, () => worker.getNextJob("t:0", { block: false }));
  },
};

const result = await paths[order.path]();
process.stdout.write(JSON.stringify(result) + "\n", () => process.exit(0));
