// A Node worker of pg-boss for faults: `node pgboss.mjs SETTINGS`, the same JSON as of worker_program.py. It writes the
// same lines into the ledger, and stops at SIGTERM.
import { createRequire } from "node:module";
import { setTimeout as sleep } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { openBook } from "./book.mjs";

const settings = JSON.parse(process.argv[2]);
const folder = createRequire(new URL("../../interop/node-pgboss/", import.meta.url));
const library = await import(pathToFileURL(folder.resolve(settings.package)));
const PgBoss = library.PgBoss ?? library.default;
const url = new URL(settings.url.replace("pgboss+", ""));
const schema = url.searchParams.get("schema");
url.search = "";
const write = openBook(settings);

const boss = new PgBoss({ connectionString: url.href, schema, supervise: false, schedule: false, migrate: false, max: 3 });
boss.on("error", (error) => console.error(error.message));
await boss.start();

const run = async (job) => {
  const claim = `node:${settings.name}:${job.id}:${job.startedOn.getTime()}`;
  const about = { n: job.data.n, job: job.id, token: claim };
  write("started", { ...about, claimed: job.startedOn.getTime() / 1000 });
  await sleep(Math.random() * settings.nap * 1000);
  if (job.data.kind === "poison" || (job.data.kind === "flaky" && job.retryCount === 0)) {
    write("ended", { ...about, detail: "raised" });
    throw new Error(`it must fail: ${claim}`);
  }
  write("ended", { ...about, detail: "returned" });
  return { n: job.data.n, token: claim };
};
await boss.work("work", { pollingIntervalSeconds: 0.5, batchSize: 1, includeMetadata: true }, ([job]) => run(job));
process.on("SIGTERM", async () => {
  await boss.stop({ graceful: true, timeout: 5000 });
  process.exit(0);
});
