// Runs a short script beside BullMQ, with helpers in scope:
//
//   connection, prefixes   where to work
//   say(value)             adds a value to the answer
//   queueOf(prefix, name)  a Queue, "q" unless named
//   until(test)            awaits that a test is true
//   work(prefix, times, handler, name)   runs jobs of a queue one at a time until `times` of them have finished
//
// What the script made is closed after it, without a wait for jobs that still run: as if its process had ended.
const AsyncFunction = (async () => {}).constructor;
const KINDS = ["Queue", "Worker", "FlowProducer", "QueueEvents", "QueueEventsProducer"];

export const runScript = async (bull, connection, require, { prefixes, body }) => {
  const said = [];
  const made = [];
  const kept = { construct: (kind, args) => made[made.push(new kind(...args)) - 1] };
  const kinds = Object.fromEntries(KINDS.map((name) => [name, new Proxy(bull[name], kept)]));
  const queueOf = (prefix, name = "q") => new kinds.Queue(name, { connection, prefix });
  const until = async (test) => {
    while (!(await test())) await new Promise((go) => setTimeout(go, 5));
  };
  const work = async (prefix, times, handler, name = "q") => {
    const worker = new kinds.Worker(name, handler, { connection, prefix, autorun: false });
    worker.on("error", () => {});
    let done = 0;
    const seen = new Promise((go) => {
      const count = () => {
        done += 1;
        if (done >= times) go();
      };
      worker.on("completed", count);
      worker.on("failed", count);
    });
    worker.run();
    await seen;
    await worker.close();
  };
  const { Job, UnrecoverableError } = bull;
  const scope = { ...kinds, Job, UnrecoverableError, connection, prefixes, say: (value) => said.push(value) };
  Object.assign(scope, { queueOf, until, work, require });
  try {
    await new AsyncFunction(...Object.keys(scope), body)(...Object.values(scope));
    // A Queue writes its settings unasked, some time after it was made.
    await Promise.all(made.map((one) => (one instanceof bull.Queue && !one.closing ? one.isPaused() : null)));
  } finally {
    await Promise.allSettled(made.map((one) => (one instanceof bull.Worker ? one.close(true) : one.close())));
  }
  return said;
};
