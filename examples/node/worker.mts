// Runs the jobs of the Python task draw_logo: node worker.mts
// What it returns is read as the type that the task declares.

import { Worker, type Job } from "bullmq";

interface Arguments {
  text: string;
  width: number;
}

interface Logo {
  svg: string;
  width: number;
}

const options = { connection: { url: process.env.REDIS_URL }, prefix: process.env.PREFIX ?? "bull" };

const worker = new Worker<Arguments, Logo, "draw_logo">(
  "logos",
  async (job: Job<Arguments, Logo, "draw_logo">): Promise<Logo> => {
    const { text, width } = job.data;
    return { svg: `<svg width="${width}"><text>${text}</text></svg>`, width };
  },
  { ...options, concurrency: 10 },
);

process.on("SIGTERM", async () => {
  await worker.close();
  process.exit(0);
});
