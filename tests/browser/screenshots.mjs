// SPDX-License-Identifier: Apache-2.0
// screenshots.mjs DIR: pictures of each view, of real jobs of the binary in $MUSTER, light and dark,
// wide and as a phone has it. Three of them are in the README.
import { spawn } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";
import { RecordedRun } from "./recorded_run.mjs";

const out = resolve(process.argv[2] ?? "screenshots");
const here = dirname(fileURLToPath(import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "digits-"));
const kWide = { width: 1280, height: 800 };
const kPhone = { width: 390, height: 844 };

async function start(args) {
  const job = spawn(process.env.MUSTER, args, {
    cwd: folder,
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, HOME: folder, XDG_STATE_HOME: folder },
  });
  let said = "";
  const url = await new Promise((done, failed) => {
    const read = (bytes) => {
      said += bytes;
      const match = /http:\/\/[^\s/]+\/\?token=[\w-]+/.exec(said);
      if (match) done(match[0]);
    };
    job.stdout.on("data", read);
    job.stderr.on("data", read);
    job.on("close", () => failed(new Error(`${args.join(" ")} has ended:\n${said}`)));
  });
  const ended = new Promise((done) => job.on("close", done));
  return {
    url,
    ended,
    stop: () => {
      job.kill("SIGTERM");
      return ended;
    },
  };
}

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox"],
});

async function shoot(
  name,
  server,
  { place = "#/", size = kWide, dark = false, whole = false, prepare = async () => {} } = {},
) {
  const context = await browser.newContext({
    viewport: size,
    colorScheme: dark ? "dark" : "light",
  });
  const page = await context.newPage();
  await page.goto(`${server.url}${place}`);
  await page.waitForTimeout(2_500);
  await prepare(page);
  await page.screenshot({ path: join(out, `${name}.png`), fullPage: whole });
  await context.close();
  console.log(`${name}.png`);
}

async function running() {
  const job = await start(["--http", "127.0.0.1:0", "--nproc-per-node", "8", "trainer.py", "600"]);
  await new Promise((done) => setTimeout(done, 10_000));
  await shoot("running", job, { whole: true });
  await shoot("running-dark", job, { dark: true });
  await shoot("running-phone", job, { size: kPhone, dark: true, whole: true });
  await shoot("logs", job, { place: "#/logs?attempt=0&ranks=0-7&streams=stdout,stderr" });
  await shoot("logs-one-dark", job, { place: "#/logs?attempt=0&ranks=2", dark: true });
  await shoot("logs-phone", job, { place: "#/logs?attempt=0&ranks=0-3", size: kPhone });
  await shoot("search", job, { place: "#/search?q=WARNING" });
  await shoot("keys", job, { prepare: (page) => page.keyboard.press("?") });
  await shoot("stop", job, {
    prepare: (page) => page.getByRole("button", { name: "Stop …" }).click(),
  });
  await job.stop();
}

async function failed() {
  const job = await start([
    "--http",
    "127.0.0.1:0",
    "--nproc-per-node",
    "8",
    "--max-restarts",
    "1",
    "--log-dir",
    join(folder, "failed"),
    "trainer.py",
    "600",
    "40",
  ]);
  await job.ended;
  const server = await start(["view", "--http", "127.0.0.1:0", join(folder, "failed")]);
  await shoot("failure", server);
  await shoot("failure-dark", server, { dark: true, whole: true });
  await shoot("failure-phone", server, { size: kPhone, whole: true });
  await server.stop();
}

async function stalled() {
  const train = join(here, "..", "..", "examples", "pytorch_ddp", "train.py");
  const job = await start([
    ...["--http", "127.0.0.1:0", "--nproc-per-node", "8", "--hang-timeout", "5"],
    ...[train, "--epochs", "1000", "--hang-at-epoch", "3", "--hang-rank", "5"],
  ]);
  const named = (page) => page.getByText("rank 5 differs").first().waitFor({ timeout: 60_000 });
  await shoot("stalled", job, { prepare: named });
  await shoot("stalled-phone", job, { size: kPhone, dark: true, whole: true, prepare: named });
  await job.stop();
}

async function waiting() {
  const job = await start([
    "--http",
    "127.0.0.1:0",
    "--nnodes",
    "4",
    "--rdzv-backend",
    "c10d",
    "--rdzv-endpoint",
    "localhost:29871",
    "--nproc-per-node",
    "8",
    "trainer.py",
    "600",
  ]);
  await shoot("waiting", job);
  await job.stop();
}

async function large() {
  const run = new RecordedRun(join(folder, "large"), { nodes: 512, workers: 8 });
  run.begin(0);
  run.fail(0, 1234);
  run.end("failed", 1);
  const server = await start(["view", "--http", "127.0.0.1:0", run.write()]);
  await shoot("ranks-4096", server, { whole: true });
  await shoot("ranks-4096-phone", server, { size: kPhone, dark: true });
  await server.stop();
}

mkdirSync(out, { recursive: true });
copyFileSync(join(here, "trainer.py"), join(folder, "trainer.py")); // its place stands in tracebacks
try {
  await failed();
  await stalled();
  await running();
  await waiting();
  await large();
} finally {
  await browser.close();
  rmSync(folder, { recursive: true, force: true });
}
