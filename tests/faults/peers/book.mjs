// The ledger's file of this process: one line of JSON per entry, in one write, as ledger.py reads them.
import { openSync, writeSync } from "node:fs";

// The process ends with the one that started it, however that ends: a run that is killed leaves no load.
const parent = process.ppid;
setInterval(() => process.ppid === parent || process.exit(1), 1000).unref();

export const openBook = ({ folder, name }) => {
  const file = openSync(`${folder}/${name}.jsonl`, "a", 0o600);
  return (kind, fields) => writeSync(file, `${JSON.stringify({ kind, by: name, at: Date.now() / 1000, ...fields })}\n`);
};
