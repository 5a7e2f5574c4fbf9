// SPDX-License-Identifier: Apache-2.0
// Drives the built binary ($MUSTER, else the release build) with real jobs, and a real browser that looks at them.
// Everything that a test starts ends with it. A page fails its test if it says an error on the
// console, throws, asks anybody but its own server, or runs a script that came out of a log.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { closeSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, writeSync } from "node:fs";
import { createServer, request } from "node:http";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import process from "node:process";
import { after } from "node:test";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

export const kMuster =
  process.env.MUSTER || fileURLToPath(new URL("../../build/release/muster", import.meta.url));
const kChromium = process.env.CHROMIUM ?? "/usr/bin/chromium";
const kHere = dirname(fileURLToPath(import.meta.url));
const kAxe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

// Far more than anything here needs.
export const kPatience_ms = 30_000;

export async function wait_until(predicate, what, patience_ms = kPatience_ms) {
  const deadline = Date.now() + patience_ms;
  let last;
  for (;;) {
    const value = await predicate();
    if (value) return value;
    last = value;
    if (Date.now() > deadline)
      throw new Error(`gave up waiting until ${what} (${JSON.stringify(last)})`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

// Ends what a test has begun, the latest first: the page before its server, that before its folder.
const kEnds = new WeakMap();

function at_end(t, end) {
  let ends = kEnds.get(t);
  if (!ends) {
    ends = [];
    kEnds.set(t, ends);
    t.after(async () => {
      const faults = [];
      for (const one of ends.reverse()) {
        try {
          await one();
        } catch (fault) {
          faults.push(fault);
        }
      }
      if (faults.length > 0) throw faults[0];
    });
  }
  ends.push(end);
}

export function make_folder(t) {
  const folder = mkdtempSync(join(tmpdir(), "muster-browser-"));
  at_end(t, () => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

// A muster that runs until it is stopped. `url` is the address that it printed, token and all.
export class Muster {
  constructor(child) {
    this.process = child;
    this.output = "";
    this.ended = new Promise((resolve) => child.on("close", (code) => resolve(code)));
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding("utf8");
      stream.on("data", (text) => (this.output = (this.output + text).slice(-100_000)));
    }
  }

  async find_url() {
    const find = () => /http:\/\/[^\s/]+\/\?token=[\w-]+/.exec(this.output)?.[0];
    this.url = await wait_until(find, `muster prints its address: ${this.output}`);
    return this.url;
  }

  at(place) {
    return `${this.url}${place}`;
  }

  // To the process that serves: what was started only waits for it.
  signal(name) {
    const { pid } = this.process;
    const [server] = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ");
    process.kill(Number(server), name);
  }

  async stop() {
    if (this.process.exitCode !== null || this.process.signalCode !== null) return;
    this.signal("SIGCONT");
    this.process.kill("SIGTERM");
    const late = setTimeout(() => this.process.kill("SIGKILL"), 15_000);
    await this.ended;
    clearTimeout(late);
  }
}

export async function start_muster(t, args, env = {}) {
  const folder = make_folder(t);
  const muster = new Muster(
    spawn(kMuster, args, {
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, HOME: folder, XDG_STATE_HOME: join(folder, "state"), ...env },
    }),
  );
  at_end(t, () => muster.stop());
  await muster.find_url();
  return muster;
}

// A job of workers that say what the test tells them.
export async function start_speakers(t, count, args = []) {
  const pipes = make_folder(t);
  const open = [];
  for (let rank = 0; rank < count; ++rank) {
    for (const stream of ["stdout", "stderr"]) {
      const path = join(pipes, `${rank}.${stream}`);
      execFileSync("mkfifo", [path]);
      // Opened both ways, so that neither side waits for the other.
      open.push([`${rank}.${stream}`, openSync(path, "r+")]);
    }
  }
  const pipe = new Map(open);
  at_end(t, () => open.forEach(([, file]) => closeSync(file)));
  const job = await start_muster(
    t,
    [
      "--http",
      "127.0.0.1:0",
      "--nproc-per-node",
      String(count),
      ...args,
      "--no-python",
      join(kHere, "speaker.sh"),
    ],
    { SPEAK: pipes },
  );
  job.say = (text, { rank = 0, stream = "stdout" } = {}) => {
    let bytes = Buffer.from(text);
    while (bytes.length > 0) bytes = bytes.subarray(writeSync(pipe.get(`${rank}.${stream}`), bytes));
  };
  return job;
}

// The folder of a run that is over, whose logs the test writes itself.
export function make_run(t, workers = 1) {
  const base = make_folder(t);
  const env = { ...process.env, HOME: base };
  execFileSync(
    kMuster,
    [
      "--http",
      "off",
      "--log-dir",
      base,
      "--nproc-per-node",
      String(workers),
      "--no-python",
      "sh",
      "-c",
      "echo begin",
    ],
    { env, stdio: "ignore" },
  );
  const [name] = execFileSync("ls", [base], { encoding: "utf8" }).trim().split("\n");
  const folder = join(base, name);
  const log = (rank, stream = "stdout") => {
    const path = join(folder, "attempt_0", String(rank), `${stream}.log`);
    mkdirSync(dirname(path), { recursive: true });
    rmSync(path.replace(/log$/, "times"), { force: true });
    return path;
  };
  return { folder, log };
}

export const kLineBytes = 100;

// Lines of 100 bytes each, "step 0000000000 ...". `mark` may put another text into some of them.
export function write_big_log(path, lines, mark = () => "") {
  const file = openSync(path, "w");
  const block = Buffer.alloc(10_000 * kLineBytes);
  for (let from = 0; from < lines; from += 10_000) {
    const count = Math.min(10_000, lines - from);
    for (let i = 0; i < count; ++i) {
      const text = `step ${String(from + i).padStart(10, "0")} loss 0.5 ${mark(from + i)}`;
      block.write(`${text.padEnd(kLineBytes - 1, ".")}\n`, i * kLineBytes, "latin1");
    }
    writeSync(file, block, 0, count * kLineBytes);
  }
  closeSync(file);
}

let browser = null;

export async function get_browser() {
  browser ??= await chromium.launch({
    executablePath: kChromium,
    args: ["--no-sandbox", "--enable-precise-memory-info"],
  });
  return browser;
}

export async function close_browser() {
  await browser?.close();
  browser = null;
}

// Not for bench/page.mjs, which is no test.
if (process.env.NODE_TEST_CONTEXT) after(close_browser);

// What stands between a page and its server, and can be cut: connections end, new ones are refused.
export async function start_wire(t) {
  const sockets = new Set();
  let whole = true;
  const proxy = createServer((asked, answer) => {
    const onward = request(asked.url, { method: asked.method, headers: asked.headers }, (got) => {
      answer.writeHead(got.statusCode, got.headers);
      got.pipe(answer);
    });
    onward.on("error", () => answer.destroy());
    answer.on("close", () => onward.destroy());
    asked.pipe(onward);
  });
  proxy.on("connection", (socket) => {
    if (!whole) socket.destroy();
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
  });
  await new Promise((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  const wire = {
    server: `http://127.0.0.1:${proxy.address().port}`,
    set_whole(value) {
      whole = value;
      if (!whole) for (const socket of sockets) socket.destroy();
    },
  };
  at_end(t, () => {
    wire.set_whole(false);
    proxy.close();
  });
  return wire;
}

// `wire`: may be cut, and then failing requests are no fault of the page's; `may_fail` says the same
// of a server that the test stops.
export async function open_page(
  t,
  url,
  { width = 1280, height = 800, dark = false, touch = false, wire = null, may_fail = false } = {},
) {
  const context = await (
    await get_browser()
  ).newContext({
    viewport: { width, height },
    colorScheme: dark ? "dark" : "light",
    hasTouch: touch,
    ...(wire && { proxy: { server: wire.server, bypass: "<-loopback>" } }),
    permissions: ["clipboard-read", "clipboard-write"],
  });
  const page = await context.newPage();
  const faults = [];
  const origin = new URL(url).origin;
  page.on("console", (message) => {
    const failed_request = (wire || may_fail) && message.text().startsWith("Failed to load resource");
    if (message.type() === "error" && !failed_request) faults.push(`console: ${message.text()}`);
  });
  page.on("response", (response) => {
    if (response.status() >= 400 && !may_fail && !wire) faults.push(`${response.status()}: ${response.url()}`);
  });
  page.on("pageerror", (error) => faults.push(`thrown: ${error.stack}`));
  page.on("dialog", (dialog) => {
    faults.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on("request", (request) => {
    if (new URL(request.url()).origin !== origin) faults.push(`foreign request: ${request.url()}`);
  });
  at_end(t, async () => {
    const pwned = await page.evaluate(() => window.pwned).catch(() => undefined);
    await context.close();
    assert.deepEqual(faults, []);
    assert.equal(pwned, undefined, "a script from a log was run");
  });
  await page.goto(url);
  return page;
}

export async function check_axe(page, what) {
  await page.evaluate(kAxe);
  const found = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  const said = found.violations.map(
    (rule) =>
      `${rule.id}: ${rule.help}: ${rule.nodes
        .slice(0, 3)
        .map((node) => node.html.slice(0, 160))
        .join(" | ")}`,
  );
  assert.deepEqual(said, [], what);
}

// What of a log can be seen, from top to bottom.
export function visible_rows(page) {
  return page.evaluate(() => {
    const scroller = document.querySelector(".log-scroll");
    if (!scroller) return [];
    const box = scroller.getBoundingClientRect();
    return [...scroller.querySelectorAll(".row")]
      .map((row) => ({ row, at: row.getBoundingClientRect() }))
      .filter(({ at }) => at.bottom > box.top + 1 && at.top < box.bottom - 1)
      .sort((a, b) => a.at.top - b.at.top)
      .map(({ row, at }) => ({
        top: at.top,
        height: at.height,
        number: row.querySelector(".n")?.textContent ?? "",
        label: row.querySelector(".r")?.textContent ?? "",
        text: row.querySelector(".x")?.textContent ?? "",
        classes: row.className,
      }));
  });
}

export async function visible_texts(page) {
  return (await visible_rows(page)).map((row) => row.text);
}

export function wait_for_text(page, text) {
  return wait_until(
    async () => (await visible_texts(page)).some((row) => row.includes(text)),
    `"${text}" is shown`,
  );
}

export async function current_row(page) {
  return (await visible_rows(page)).find((row) => row.classes.includes("current"));
}
