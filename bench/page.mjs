// SPDX-License-Identifier: Apache-2.0
// What a reader of the page waits for: `node bench/page.mjs [--rounds N] [--quick]`, with the packages
// of tests/browser installed and a release build. A run's folder with a log of 1 GB (10 million lines)
// and seven more of 100 MB is shown by `muster view` in Debian's Chromium. Measured are
//   tail        a new tab is sent to the log: from there to its last line in the document, page included
//   jump        Enter after a line number: to the frame in which that line can be seen
//   first hit   Enter after a word that stands once, in the middle of the big log and in each other:
//               to its first row, all ranks being searched
//   tab memory  resident pages of the tab's process (shared ones in part) after all of that, and
//               after 20 s of following 64 ranks that print 1,000 lines a second each
import { readdirSync, readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import * as harness from "../tests/browser/harness.mjs";

const { values: options } = parseArgs({
  options: { rounds: { type: "string", default: "11" }, quick: { type: "boolean", default: false } },
});
const kRounds = Number(options.rounds);
const kScale = options.quick ? 100 : 1;
const kLines = 10_000_000 / kScale;
const kOthers = 1_000_000 / kScale;
const kOne = "#/logs?attempt=0&ranks=0&streams=stdout";

// What the harness expects of a test: a place for what is to be done at the end.
const ends = [];
const t = { after: (end) => ends.push(end) };

function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)];
}

function show(what, values, unit, target) {
  const [least, most] = [Math.min(...values), Math.max(...values)].map((value) => value.toFixed(0));
  console.log(`${what.padEnd(34)} ${median(values).toFixed(0).padStart(6)} ${unit}  (${least} to ${most})  target ${target}`);
}

// Milliseconds of the page's own clock, from the navigation or `since` until a row has this text.
function time_of(page, text, since = 0) {
  return page.evaluate(
    async ([wanted, from]) => {
      const is_there = () => [...document.querySelectorAll(".row .x")].some((x) => x.textContent.startsWith(wanted));
      while (!is_there()) await new Promise((resolve) => requestAnimationFrame(resolve));
      return performance.now() - from;
    },
    [text, since],
  );
}

const step = (line) => `step ${String(line).padStart(10, "0")}`;

async function tails(url) {
  const times = [];
  for (let i = 0; i < kRounds; ++i) {
    const page = await harness.open_page(t, new URL("/icon.svg", url).href, { may_fail: true });
    await page.goto(url, { waitUntil: "commit" });
    times.push(await time_of(page, step(kLines - 1)));
    await page.close();
  }
  show("tail of the big log on screen", times, "ms", "300");
}

async function jumps(page) {
  const times = [];
  for (let i = 0; i < kRounds * 3; ++i) {
    const line = 1 + Math.floor((((i * 0.618034) % 1) * kLines * 0.98));
    await page.keyboard.press(":");
    await page.keyboard.type(String(line + 1));
    const since = await page.evaluate(() => {
      return new Promise((resolve) => {
        addEventListener("keydown", (event) => event.key === "Enter" && (window.began = performance.now()), {
          capture: true,
          once: true,
        });
        resolve(0);
      });
    });
    await page.keyboard.press("Enter");
    times.push((await time_of(page, step(line), since)) - (await page.evaluate(() => window.began)));
  }
  show("jump to any line", times, "ms", "150");
}

async function first_hits(muster) {
  const times = [];
  for (let i = 0; i < kRounds; ++i) {
    const page = await harness.open_page(t, muster.at("#/search"));
    await page.fill("input[name=q]", "needle");
    await page.evaluate(() => {
      addEventListener("keydown", () => (window.began = performance.now()), { capture: true, once: true });
    });
    await page.keyboard.press("Enter");
    const at = await page.evaluate(async () => {
      while (!document.querySelector(".row mark")) await new Promise((resolve) => requestAnimationFrame(resolve));
      return performance.now() - window.began;
    });
    times.push(at);
    await page.close();
  }
  show("first hit, all ranks searched", times, "ms", "1000");
}

// Of the largest process that draws a page.
function tab_memory() {
  let most = 0;
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    try {
      if (!readFileSync(`/proc/${pid}/cmdline`, "utf8").includes("--type=renderer")) continue;
      const pss = /^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, "utf8"));
      most = Math.max(most, Number(pss?.[1] ?? 0) * 1024);
    } catch {
      // It has ended.
    }
  }
  return most / 1e6;
}

async function floods() {
  const script = 'i=0; while [ $i -lt 60 ]; do seq -f "rank $RANK step %.0f loss 0.5 of a line that is about so long" 1000; sleep 1; i=$((i+1)); done';
  const workers = options.quick ? 4 : 64;
  const args = ["--http", "127.0.0.1:0", "--nproc-per-node", String(workers), "--console", "none"];
  const job = await harness.start_muster(t, [...args, "--no-python", "sh", "-c", script]);
  const page = await harness.open_page(t, job.at(`#/logs?attempt=0&ranks=0-${workers - 1}&streams=stdout`));
  await harness.wait_for_text(page, "step");
  const frames = await page.evaluate(async (seconds) => {
    let count = 0;
    const end = performance.now() + seconds * 1000;
    while (performance.now() < end) {
      await new Promise((resolve) => requestAnimationFrame(resolve));
      ++count;
    }
    return count / seconds;
  }, options.quick ? 3 : 20);
  show("tab memory while ranks flood", [tab_memory()], "MB", "250");
  console.log(`${"frames a second meanwhile".padEnd(34)} ${frames.toFixed(0).padStart(6)}`);
}

async function main() {
  console.log(`${availableParallelism()} cores, ${(kLines * harness.kLineBytes) / 1e6} MB in the big log`);
  const run = harness.make_run(t, 8);
  const mark = (from) => (line) => (line === from ? "needle" : "");
  harness.write_big_log(run.log(0), kLines, mark(kLines / 2));
  for (let rank = 1; rank < 8; ++rank) harness.write_big_log(run.log(rank), kOthers, mark(kOthers - rank * 1000));
  const muster = await harness.start_muster(t, ["view", run.folder, "--http", "127.0.0.1:0"]);
  const page = await harness.open_page(t, muster.at(kOne));
  await harness.wait_for_text(page, step(kLines - 1));
  await tails(muster.at(kOne));
  await jumps(page);
  show("tab memory after the jumps", [tab_memory()], "MB", "250");
  await first_hits(muster);
  await page.close();
  await floods();
}

try {
  await main();
} finally {
  for (const end of ends) await end();
  await harness.close_browser();
}
