// Unpacks the browser below node_modules, unless that was done before, and prints the path of its executable.
import { mkdirSync } from "node:fs";
import { join } from "node:path";

const folder = join(import.meta.dirname, "node_modules", ".chromium");
mkdirSync(folder, { recursive: true });
process.env.TMPDIR = folder;
const { default: chromium } = await import("@sparticuz/chromium");
console.log(await chromium.executablePath());
