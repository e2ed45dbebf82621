// Next and latest times as npm cron-parser computes them, for random patterns, zones and instants.
//
//   node cron_vectors.mjs SEED COUNT > vectors.jsonl
//
// The recorded file is `node cron_vectors.mjs 1 8000`.
// The first lines give each zone as this Node knows it: {zone, offset, changes: [[second, offset], ...]}, offsets in
// minutes. Each further line is one question: p pattern, z zone, f the instant asked from in ms; and its answers: n the
// next three times in seconds, each from a fresh parse at the one before, l the latest time at or before f. "!" stands
// for an answer the package threw on; a pattern that it refuses to parse has r: 1 and no answers.
import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);
const { CronExpressionParser } = require('cron-parser');

const [seed, count] = process.argv.slice(2).map(Number);
if (!Number.isInteger(seed) || !Number.isInteger(count)) throw new Error('usage: cron_vectors.mjs SEED COUNT');

const ZONES = [
  'UTC', 'America/New_York', 'America/Chicago', 'America/Los_Angeles', 'America/St_Johns', 'America/Sao_Paulo',
  'America/Santiago', 'America/Havana', 'America/Asuncion', 'America/Nuuk', 'America/Mexico_City', 'Atlantic/Azores',
  'Europe/Berlin', 'Europe/London', 'Europe/Dublin', 'Europe/Volgograd', 'Africa/Casablanca', 'Africa/Cairo',
  'Africa/Juba', 'Asia/Amman', 'Asia/Beirut', 'Asia/Gaza', 'Asia/Tehran', 'Asia/Kathmandu', 'Asia/Kolkata',
  'Asia/Almaty', 'Asia/Tokyo', 'Australia/Sydney', 'Australia/Adelaide', 'Australia/Lord_Howe', 'Pacific/Apia',
  'Pacific/Auckland', 'Pacific/Chatham', 'Pacific/Norfolk', 'Antarctica/Troll', 'Antarctica/Casey',
];
const DAY = 86400;
const year = (y) => Date.UTC(y, 0, 1) / 1000;
// Zones are recorded beyond the years asked about: a fifth weekday of February can be 40 years away.
const RECORDED = [year(1965), year(2075)];
const ASKED = [year(2020), year(2031)];

let state = seed >>> 0;
function random() {
  state = (state + 0x9e3779b9) >>> 0;
  let x = state;
  x = Math.imul(x ^ (x >>> 16), 0x21f0aaad);
  x = Math.imul(x ^ (x >>> 15), 0x735a2d97);
  return ((x ^ (x >>> 15)) >>> 0) / 2 ** 32;
}
const below = (n) => Math.floor(random() * n);
const between = (low, high) => low + below(high - low + 1);
const pick = (list) => list[below(list.length)];
const chance = (p) => random() < p;

function offsetReader(zone) {
  const format = new Intl.DateTimeFormat('en-US', { timeZone: zone, timeZoneName: 'longOffset' });
  return (second) => {
    const name = format.formatToParts(second * 1000).find((part) => part.type === 'timeZoneName').value;
    const parts = /^GMT(?:([+-])(\d\d):(\d\d))?/.exec(name);
    return parts[1] ? (parts[1] === '-' ? -1 : 1) * (Number(parts[2]) * 60 + Number(parts[3])) : 0;
  };
}

function recordZone(zone) {
  const offsetAt = offsetReader(zone);
  const changes = [];
  const first = offsetAt(RECORDED[0]);
  let offset = first;
  for (let at = RECORDED[0]; at < RECORDED[1]; at += 5 * DAY) {
    if (offsetAt(at + 5 * DAY) === offset) continue;
    let [low, high] = [at, at + 5 * DAY];
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2);
      if (offsetAt(middle) === offset) low = middle;
      else high = middle;
    }
    offset = offsetAt(high);
    changes.push([high, offset]);
  }
  return { zone, offset: first, changes };
}

const SECOND = { low: 0, high: 59 };
const HOUR = { low: 0, high: 23 };
const DATE = { low: 1, high: 31 };
const MONTH = { low: 1, high: 12, names: ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'] };
const WEEKDAY = { low: 0, high: 7, names: ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'] };

const anyCase = (name) => pick([name, name.toUpperCase(), name[0].toUpperCase() + name.slice(1)]);

function spell(unit, value) {
  if (unit.names && chance(0.4)) return anyCase(unit.names[value - unit.low]);
  return chance(0.05) ? `0${value}` : String(value);
}

function item(unit, near) {
  const value = () => (near !== undefined && chance(0.7) ? near : between(unit.low, unit.high));
  const range = () => {
    const ends = [value(), value()].sort((a, b) => a - b);
    return `${spell(unit, ends[0])}-${spell(unit, ends[1])}`;
  };
  const step = () => between(1, chance(0.1) ? 99 : Math.ceil((unit.high - unit.low) / 2));
  switch (below(6)) {
    case 0: case 1: return spell(unit, value());
    case 2: return range();
    case 3: return `${range()}/${step()}`;
    case 4: return `${pick(['*', '*', '*', '?'])}/${step()}`;
    default: return `${spell(unit, value())}/${step()}`;
  }
}

function field(unit, wild, near) {
  if (chance(wild)) return chance(0.1) ? '?' : '*';
  const special = random();
  if (unit === DATE && special < 0.15) return pick(['L', 'L', 'L', '1,L', '15,L', '30L', '5-9L', '28L/2']);
  if (unit === WEEKDAY && special < 0.15) return `${spell(unit, between(0, 7))}L`;
  if (unit === WEEKDAY && special < 0.35) return `${spell(unit, between(0, 7))}#${between(1, 5)}`;
  if (special > 0.985) return pick(['1*', '*-5', '*#2', '?#1', '2/1*', '1-3-2', '9L', '12L', '5L/2', '5L#2', 'jan1', '1,5L']);
  return Array.from({ length: pick([1, 1, 1, 2, 3]) }, () => item(unit, near)).join(',');
}

const ALIASES = ['@yearly', '@annually', '@monthly', '@weekly', '@daily', '@hourly', '@minutely', '@secondly', '@weekdays', '@weekends'];

// Patterns at the edges of the dialect: asked every time, whatever the seed.
const EDGES = [
  '', '   ', '*', '5', '* *', '* * * *', '* * * * * * *', '0 0 1 1 * 2027', '0 0 0 1 1 * 2027', '\t0 0\n* * *\n',
  '0\u00a00 * * *', '0\u001f0 * * *', '0\u00850 * * *', '\ufeff0 0 * * *', '\u0663 * * * *', '0 0 * * \u017fun',
  ' '.repeat(1100) + '* * * * *', '1,'.repeat(600) + '2 * * * *',
  ...ALIASES, '@Daily', ' @daily', '@daily ', '@midnight', '@reboot', 'toString', '__proto__', 'constructor',
  '60 * * * *', '0 24 * * *', '0 0 0 * *', '0 0 32 * *', '0 0 * 0 *', '0 0 * 13 *', '* * * * 8', '1.5 * * * *', '+5 * * * *',
  '5e0 * * * *', '0x5 * * * *', '00005 * * * *', '99999999999999999999 * * * *', '*/99999999999999999999 * * * *',
  '*,5 * * * *', '5,5 * * * *', '5,05 * * * *', '1,,2 * * * *', ',1 * * * *', '1, * * * *', '?,1 * * * *', '* * * * * ,',
  '22-2 * * * *', '*/0 * * * *', '*/-5 * * * *', '*/5/2 * * * *', '/5 * * * *', '5/ * * * *', '5- * * * *', '-5 * * * *',
  '** * * * *', '1* * * * *', '*1 * * * *', '*-5 * * * *', '5-* * * * *', '*/1* * * * *', '*/* * * * *', '1-5-9 * * * *',
  '0 0 * * 7', '0 0 * * 07', '0 0 * * 0,7', '0 0 * * 6-7', '0 0 * * 5-7,0', '0 0 * * 7-7', '0 0 * * 1-7/3', '0 0 * * 0-0',
  '0 0 * * 0-0,7', '0 0 * * 1-1,1', '0 0 * * sun-sat', '0 0 * * sat-sun', '0 0 * * fri-7', '0 0 * * mon-',
  '0 0 * january *', '0 0 * jan1 *', '0 0 * 1jan *', '0 0 * mon *', '0 0 * sun *', '0 0 * * jan', '0 0 * * monday',
  '0 0 * * sun1', '0 0 * * 1sun', '0 0 * * con', '0 0 * * Lmon',
  '0 0 * * MON#2', '0 0 * * mon#02', '0 0 * * mon#6', '0 0 * * mon#0', '0 0 * * mon#', '0 0 * * #2', '0 0 * * 1#1,3#2',
  '0 0 * * 1#1#2', '0 0 * * 3#1-5', '0 0 * * 3/2#1', '0 0 * * 1-5#2', '0 0 * * *#3', '0 0 1#2 * *', '# * * * *',
  '0 0 L * *', '0 0 l * *', '0 0 LW * *', '0 0 15W * *', '0 0 L-3 * *', '0 0 5L * *', '0 0 L,L * *', '0 0 L,1L * *',
  '0 0 1L-5 * *', '0 0 5-10L * *', '0 0 5L/2 * *', '0 0 5L3 * *', '0 0 * * L', '0 0 * * 5L', '0 0 * * 5l', '0 0 * * friL',
  '0 0 * * 0L', '0 0 * * 7L', '0 0 * * 9L', '0 0 * * 12L', '0 0 * * 123L', '0 0 * * 1L-5', '0 0 * * 5L/2', '0 0 * * 5L#2',
  '0 0 * * 5L3', 'L * * * *', '0 L * * *', '0 0 * L *', '0 0 * 2L *',
  '0 0 ? * ?', '0 0 ?/2 * 1', '0 0 1-31 * 1', '0 0 */1 * 1', '0 0 */2 * 1', '59 59 23 31 12 *',
  '0 0 29 2 *', '0 0 29 2 1#5', '0 0 31 2 *', '0 0 30,31 2 *', '0 0 31 4 *', '0 0 31 2,4 *', '0 0 31 4,6,9,11 *',
  '0 0 30 2 1', '0 0 30 2 ?', '0 0 30 2 *#5', '0 0 31 feb 1#5',
];

function spoil(text) {
  const at = below(text.length + 1);
  return text.slice(0, at) + pick([...'0123456789**??,,--//L#aW ']) + text.slice(at + below(2));
}

function pattern(nearHour) {
  const shape = random();
  if (shape < 0.02) return pick(ALIASES);
  const fields = [
    field(SECOND, 0.5), field(SECOND, 0.3, chance(0.3) ? pick([0, 15, 30, 45]) : undefined), field(HOUR, 0.3, nearHour),
    field(DATE, 0.6), field(MONTH, 0.7), field(WEEKDAY, 0.6),
  ];
  // Rare days together with rare months make the package search for decades; a few of those are enough.
  const wanted = fields.slice(shape < 0.65 ? 1 : shape < 0.96 ? 0 : between(2, 5));
  const text = wanted.join(chance(0.05) ? '  ' : ' ');
  return chance(0.06) ? spoil(text) : text;
}

function question(zones) {
  const zone = pick(zones);
  const changes = zone.changes.filter(([at]) => at >= ASKED[0] && at < ASKED[1]);
  let second = between(ASKED[0], ASKED[1] - 1);
  let nearHour;
  const where = random();
  if (changes.length > 0 && where < 0.6) {
    const [at, offset] = pick(changes);
    second = at + pick([0, 0, -1, 1, between(-3600, 3600), between(-2 * 3600, 2 * 3600), between(-DAY, DAY / 4), between(-3 * DAY, DAY)]);
    const shown = ((at + offset * 60) / 3600) % 24;
    nearHour = (Math.floor(shown) + pick([-2, -1, -1, 0, 0, 1, 2]) + 24) % 24;
  } else if (where < 0.8) {
    const monthEnd = Date.UTC(between(2020, 2030), pick([1, 2, 2, 2, between(0, 11)]), 1) / 1000;
    second = monthEnd + pick([-1, 0, 1, between(-2 * DAY, DAY)]);
  }
  const rest = pick([0, 0, 1, 999, between(1, 999)]);
  return { p: pattern(nearHour), z: zone.zone, f: second * 1000 + rest };
}

function ask(pattern, tz, ms, verb) {
  const cron = CronExpressionParser.parse(pattern, { tz, currentDate: new Date(ms) });
  try {
    return cron[verb]().getTime() / 1000;
  } catch {
    return '!';
  }
}

function answer({ p, z, f }) {
  const n = [];
  let from = f;
  try {
    for (let i = 0; i < 3; i++) {
      const next = ask(p, z, from, 'next');
      n.push(next);
      if (next === '!' || next * 1000 <= from) break;
      from = next * 1000;
    }
    return { p, z, f, n, l: ask(p, z, f + 1, 'prev') };
  } catch {
    return { p, z, f, r: 1 };
  }
}

const zones = ZONES.map(recordZone);
const lines = zones.map((zone) => JSON.stringify(zone));
for (const p of EDGES) lines.push(JSON.stringify(answer({ p, z: 'UTC', f: 1750000000123 })));
const refusable = Math.ceil(count / 10);
let refused = 0;
while (lines.length < zones.length + EDGES.length + count) {
  const line = answer(question(zones));
  if (line.r && ++refused > refusable) continue;
  lines.push(JSON.stringify(line));
}
process.stdout.write(lines.join('\n') + '\n');
