// Adds jobs for a Python task and waits for their results: node producer.mts
// The data of a job is the object that the task takes, under the name of the task.

import { Queue, QueueEvents } from "bullmq";

interface Order {
  customer: string;
  day: string; // 2026-11-16
  lines: { article: string; price: string; pieces?: number }[];
}

interface Invoice {
  customer: string;
  day: string;
  total: string;
  logo: { svg: string; width: number };
}

const options = { connection: { url: process.env.REDIS_URL }, prefix: process.env.PREFIX ?? "bull" };
const invoices = new Queue<Order, Invoice, "make_invoice">("invoices", options);
const events = new QueueEvents("invoices", options);
await events.waitUntilReady();

const job = await invoices.add("make_invoice", {
  customer: "Acme",
  day: "2026-11-16",
  lines: [
    { article: "chair", price: "49.90", pieces: 2 },
    { article: "table", price: "120.05" },
  ],
});
const invoice: Invoice = await job.waitUntilFinished(events, 30_000);
console.log(JSON.stringify(invoice));

// An order that does not fit the Python types fails once, with the path of what is wrong.
const wrong = await invoices.add("make_invoice", {
  customer: "Acme",
  day: "2026-11-16",
  lines: [{ article: "chair", price: "a lot" }],
});
try {
  await wrong.waitUntilFinished(events, 30_000);
} catch (error) {
  console.log((error as Error).message);
}

await events.close();
await invoices.close();
