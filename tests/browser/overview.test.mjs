// SPDX-License-Identifier: Apache-2.0
// The overview: what a reader sees of a job that waits, runs, fails, is killed, or whose server is gone.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:net";
import { join } from "node:path";
import process from "node:process";
import { test } from "node:test";
import {
  check_axe,
  make_folder,
  open_page,
  start_muster,
  start_speakers,
  wait_until,
} from "./harness.mjs";
import { RecordedRun } from "./recorded_run.mjs";

const kHttp = ["--http", "127.0.0.1:0"];
// What acts on the text around it, on a page or on a terminal.
const kHarm = `<img src=x onerror="window.pwned=1"><script>window.pwned=1</script>\u202eback\u2066\u200b\x1b[31mred${"W".repeat(3_000)}`;

const state_of = (page) => page.locator("h1.state").innerText();
const is_state = (page, word) =>
  wait_until(async () => (await state_of(page)).includes(word), `the job is ${word}`);
const has_cells = (page, state, count) =>
  wait_until(
    async () => (await page.locator(`.cells .c.${state}`).count()) === count,
    `${count} ranks are ${state}`,
  );
const wider_by = (page) =>
  page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);

function start_failing(t, args, script) {
  return start_muster(t, [...kHttp, ...args, "--no-python", "sh", "-c", script]);
}

// One that was free a moment ago.
async function free_port() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  await once(server, "close");
  return port;
}

function view(t, folder) {
  return start_muster(t, ["view", ...kHttp, folder]);
}

test("a running job is seen as it is, and stopped after a question", async (t) => {
  const job = await start_speakers(t, 4);
  const page = await open_page(t, job.url, { may_fail: true });
  await is_state(page, "running");
  assert.doesNotMatch(page.url(), /token/);
  await has_cells(page, "running", 4);
  await check_axe(page, "a running job");

  await page.getByRole("button", { name: "Stop …" }).click();
  await check_axe(page, "the question");
  await page.getByRole("button", { name: "Cancel" }).click();
  assert.equal(await page.locator("dialog").count(), 0);
  await page.getByRole("button", { name: "Stop …" }).click();
  await page.getByRole("button", { name: "Stop the job" }).click();
  await is_state(page, "stopped");
  await has_cells(page, "running", 0);
  await page.getByText("muster has ended.").waitFor();
});

test("a failure comes first, with its last lines, and leads to its log", async (t) => {
  const job = await start_failing(
    t,
    ["--nproc-per-node", "3", "--max-restarts", "1"],
    'if [ "$TORCHELASTIC_RESTART_COUNT" = 0 ] && [ "$RANK" = 1 ]; then echo "no such shard: 17" >&2; exit 3; fi; exec sleep 600',
  );
  const page = await open_page(t, job.url);
  const fold = page.locator(".failure-fold > summary").first();
  await fold.waitFor();
  assert.match(await fold.innerText(), /attempt 0: rank 1 .*failed after/);
  await fold.click();
  await page.locator(".failure-fold .excerpt").getByText("no such shard: 17").waitFor();

  await page.getByRole("combobox").selectOption("0");
  await page.locator("section.failure").waitFor();
  assert.equal(await page.locator("main > section").nth(1).getAttribute("class"), "card failure");
  await page.locator(".cells .c.failed").waitFor();
  await has_cells(page, "stopped", 2);
  await page.locator(".failure summary", { hasText: "only fell with it" }).click();
  await page.locator(".failure").getByText("0,2", { exact: true }).waitFor();
  await page.getByRole("button", { name: "Copy as text" }).first().click();
  assert.match(
    await page.evaluate(() => navigator.clipboard.readText()),
    /no such shard: 17[^]*victims/,
  );
  await check_axe(page, "a failure");

  await page.getByRole("button", { name: "Copy link" }).first().click();
  const link = await page.evaluate(() => navigator.clipboard.readText());
  await page.getByRole("link", { name: "Open its log at the end" }).first().click();
  await wait_until(() => /#\/logs\?.*ranks=1/.test(page.url()), "the log is open");
  await page.goto(link);
  await page.locator("section.failure").waitFor();
});

test("the line that shows a failure stands out, with what else was found and whom it blames", async (t) => {
  const run = new RecordedRun(join(make_folder(t), "run"), { nodes: 1, workers: 3 });
  run.begin(0);
  run.fail(0, 1, {
    kind: "oom_kill",
    message: "killed for want of memory",
    excerpt: ["step 17", "step 18"],
    line: "oom-kill: constraint=CONSTRAINT_MEMCG task=python",
    line_source: "kernel log",
    evidence: ["cgroup /job: killed 1 process, limit 16 GiB", "peak memory 15.9 GiB"],
  });
  run.begin(1);
  run.fail(1, 2, {
    message: "RuntimeError: Connection closed by peer",
    excerpt: ["Traceback", "RuntimeError: Connection closed by peer", "at exit"],
    line: "RuntimeError: Connection closed by peer",
    line_source: "stderr",
    victim: true,
    blames: "0-1",
  });
  run.end("failed", 1);
  const server = await view(t, run.write());
  const page = await open_page(t, server.url);
  const card = page.locator("section.failure");
  await card.waitFor();
  assert.equal(await card.locator(".shows").innerText(), "RuntimeError: Connection closed by peer");
  assert.equal(await card.getByText("The line that shows it").count(), 0);
  await card.getByText("It shows what another's failure does to a rank").waitFor();
  assert.match(
    await card.getByRole("link", { name: "ranks 0-1" }).getAttribute("href"),
    /attempt=1.*ranks=0-1/,
  );
  await check_axe(page, "a victim's failure");

  await page.getByRole("combobox").selectOption("0");
  await card.getByText("killed for want of memory").waitFor();
  assert.equal(
    await card.locator(".shows").innerText(),
    "oom-kill: constraint=CONSTRAINT_MEMCG task=python",
  );
  await card.getByText("The line that shows it, from the kernel log").waitFor();
  assert.equal(await card.locator(".evidence li").count(), 2);
  await page.getByRole("button", { name: "Copy as text" }).first().click();
  assert.match(
    await page.evaluate(() => navigator.clipboard.readText()),
    /shown by +kernel log: oom-kill[^]*evidence +peak memory 15.9 GiB/,
  );
});

test("a job that hangs says who differs and where the stacks are, and goes on", async (t) => {
  const job = await start_failing(
    t,
    ["--nproc-per-node", "3", "--hang-timeout", "3"],
    'if [ "$RANK" = 1 ]; then kill -STOP $$; while :; do echo on; sleep 0.2; done; fi; exec sleep 600',
  );
  const page = await open_page(t, job.url);
  await is_state(page, "stalled");
  const card = page.locator("section.stall");
  await card.getByText("rank 1 is stopped").first().waitFor();
  assert.match(
    await card.getByRole("link", { name: "rank 1" }).getAttribute("href"),
    /attempt=0.*ranks=1/,
  );
  await card.getByText("SIGCONT").or(card.getByText("kill -CONT")).first().waitFor();
  await has_cells(page, "suspect", 1);
  await has_cells(page, "running", 2);
  await card.getByRole("list", { name: "Saved evidence" }).waitFor();
  await check_axe(page, "a stalled job");
  await page.keyboard.press("f");
  assert.match(
    await page.getByRole("listbox").getByRole("option").innerText(),
    /^rank 1 on .*: suspect/,
  );

  const { ranks } = await (await fetch(new URL("/api/v1/ranks", job.url))).json();
  process.kill(ranks[1].pid, "SIGCONT");
  await is_state(page, "running");
  await card.waitFor({ state: "detached" });
  await has_cells(page, "suspect", 0);
  await page.locator(".stall-bar").waitFor({ state: "attached" });
  await page.locator(".events").getByText("the job goes on").waitFor();
});

test("stacks are saved at the press of a button", async (t) => {
  const job = await start_speakers(t, 2);
  const page = await open_page(t, job.url);
  await is_state(page, "running");
  await page.getByRole("button", { name: "Save stacks" }).click();
  await page.getByRole("list", { name: "Saved evidence" }).waitFor();
  await check_axe(page, "saved stacks");
});

test("a stall that is over is seen on the timeline, and its stacks are found", async (t) => {
  const run = new RecordedRun(join(make_folder(t), "run"), { nodes: 1, workers: 3 });
  run.begin(0);
  run.stall(0);
  for (let rank = 0; rank < 3; ++rank) run.exit(0, rank, 0);
  run.end("succeeded", 0);
  const server = await view(t, run.write());
  const page = await open_page(t, server.url);
  await is_state(page, "succeeded");
  assert.equal(
    await page.locator(".stall-bar").getAttribute("title"),
    "no progress for 6 min: rank 1 spins",
  );
  await page.locator(".events").getByText("the job goes on: rank 1 wrote again").waitFor();
  const saved = page.getByRole("region", { name: "Stacks of the running workers" });
  await saved.getByText("/runs/recorded/attempt_0/stacks_0").waitFor();
  await saved.getByText("rank 1: spin").waitFor();
  await check_axe(page, "a stall that is over");
});

test("a job that waits says who is here and how long it waits", async (t) => {
  const job = await start_muster(t, [
    ...kHttp,
    "--nnodes",
    "3",
    "--rdzv-backend",
    "c10d",
    "--rdzv-endpoint",
    `localhost:${await free_port()}`,
    "--nproc-per-node",
    "2",
    "--no-python",
    "sleep",
    "600",
  ]);
  const page = await open_page(t, job.url);
  await is_state(page, "waiting");
  const card = page.locator("section.waiting");
  await card.getByText("1 of 3 nodes are here").waitFor();
  await card.getByText("2 nodes missing").waitFor();
  assert.match(await card.locator(".time-left .value").innerText(), /^\d+:\d\d$/);
  await check_axe(page, "a job that waits");
});

test("a restart that was asked for begins another attempt", async (t) => {
  const job = await start_speakers(t, 2);
  const page = await open_page(t, job.url);
  await is_state(page, "running");
  await page.getByRole("button", { name: "Restart …" }).click();
  await page.getByRole("button", { name: "Restart", exact: true }).click();
  await page.getByRole("combobox").waitFor();
  assert.equal(await page.getByRole("combobox").inputValue(), "1");
  await is_state(page, "running");
  await page.locator(".events").getByText("a restart was asked for").waitFor();
});

test("a node that is lost is named, and the page goes on with the others", async (t) => {
  const args = [
    ...kHttp,
    ...["--nnodes", "1:2", "--rdzv-backend", "c10d", "--nproc-per-node", "2"],
    ...["--rdzv-endpoint", `localhost:${await free_port()}`, "--rdzv-conf", "last_call_timeout=3"],
    ...["--no-python", "sleep", "600"],
  ];
  const job = await start_muster(t, args);
  const other = await start_muster(t, args);
  const page = await open_page(t, job.url);
  await has_cells(page, "running", 4);
  assert.equal(await page.locator(".node").count(), 2);
  other.signal("SIGKILL");
  await page.getByRole("heading", { name: "1 node lost" }).waitFor();
  await has_cells(page, "running", 2);
  await is_state(page, "running");
  await check_axe(page, "a lost node");
});

test("a server that stands still is told from a calm job, and taken up again", async (t) => {
  const job = await start_speakers(t, 2);
  const page = await open_page(t, job.url, { may_fail: true });
  await is_state(page, "running");
  job.signal("SIGSTOP");
  await page.getByText("The server does not answer.").waitFor({ timeout: 60_000 });
  await has_cells(page, "running", 2);
  await check_axe(page, "without contact");
  job.signal("SIGCONT");
  await page
    .getByText("The server does not answer.")
    .waitFor({ state: "detached", timeout: 60_000 });
  await is_state(page, "running");
});

test("everything on the overview can be reached by keys", async (t) => {
  const job = await start_speakers(t, 8);
  const page = await open_page(t, job.url);
  await is_state(page, "running");
  await page.keyboard.press("?");
  await page.getByRole("dialog", { name: "Keys" }).waitFor();
  await check_axe(page, "the help");
  await page.keyboard.press("Escape");
  await page.keyboard.press("r");
  for (const key of ["ArrowRight", "ArrowRight", "ArrowLeft", "End"])
    await page.keyboard.press(key);
  const grid = page.getByRole("listbox", { name: "Ranks by node" });
  assert.match(await grid.getByRole("option").innerText(), /^rank 7 on .*: running/);
  await page.keyboard.press("Home");
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("Enter");
  await wait_until(
    () => /#\/logs\?attempt=0&ranks=1/.test(page.url()),
    "the log of rank 1 is open",
  );
  await page.keyboard.press("g");
  await page.keyboard.press("o");
  await is_state(page, "running");
});

test("4,096 ranks on 512 nodes are drawn and searched in no time", async (t) => {
  const run = new RecordedRun(join(make_folder(t), "run"), { nodes: 512, workers: 8 });
  run.begin(0);
  run.fail(0, 1234);
  run.end("failed", 1);
  const server = await view(t, run.write());
  const begin = Date.now();
  const page = await open_page(t, server.url);
  await page.locator('[data-rank="4095"]').waitFor({ state: "attached" });
  const took_ms = Date.now() - begin;
  t.diagnostic(`drawn in ${took_ms} ms`);
  assert.ok(took_ms < 10_000, `${took_ms} ms`);
  await page.keyboard.press("f");
  const option = page.getByRole("listbox").getByRole("option");
  assert.match(await option.innerText(), /^rank 1234 on node-154: failed, end exit code 1/);
  await page.keyboard.press("ArrowDown");
  assert.doesNotMatch(await option.innerText(), /rank 1234 /);
  assert.equal(await wider_by(page), 0);
  await check_axe(page, "4,096 ranks");
});

for (const { name, width, dark } of [
  { name: "wide and light", width: 1280, dark: false },
  { name: "390 pixels and dark", width: 390, dark: true },
]) {
  test(`harmful text in every field does nothing (${name})`, async (t) => {
    const run = new RecordedRun(join(make_folder(t), "run"), {
      nodes: 2,
      workers: 2,
      host: (node) => `${kHarm}${node}`,
      program: kHarm,
    });
    run.begin(0);
    const texts = { text: kHarm, folder: kHarm, groups: [kHarm], trouble: kHarm, why: kHarm };
    run.stall(0, { suspects: kHarm, waiting: kHarm, ...texts });
    const found = { line: `${kHarm}!`, line_source: kHarm, evidence: [kHarm], victim: true };
    const blames = "0,1,2,3,".repeat(200);
    run.fail(0, 1, { message: kHarm, kind: kHarm, excerpt: [kHarm, "", kHarm], ...found, blames });
    run.add("trouble", { subject: kHarm, message: kHarm });
    run.add("leftover_found", {
      pid: 7,
      command: kHarm,
      state: "D",
      wait_channel: kHarm,
      ended: false,
      fate: kHarm,
    });
    run.end("failed", 1);
    const server = await view(t, run.write());
    const page = await open_page(t, server.url, { width, dark });
    await page.locator("section.failure").waitFor();
    assert.equal(await wider_by(page), 0);
    // What is left of the characters that act is their names; copies for tooltips included.
    const acting = await page.evaluate(() =>
      /[\u202a-\u202e\u2066-\u2069\u200b\x1b]/.exec(
        document.documentElement.outerHTML + document.title,
      ),
    );
    assert.equal(acting, null);
    await check_axe(page, name);
  });
}

test("a phone shows all of it without scrolling sideways", async (t) => {
  const job = await start_failing(
    t,
    ["--nproc-per-node", "8", "--max-restarts", "1"],
    'if [ "$TORCHELASTIC_RESTART_COUNT" = 0 ] && [ "$RANK" = 1 ]; then exit 3; fi; exec sleep 600',
  );
  const page = await open_page(t, job.url, { width: 390, height: 844 });
  await page.locator(".failure-fold").waitFor();
  assert.equal(await wider_by(page), 0);
  await check_axe(page, "a phone");
  await page.goto(job.at("#/?attempt=0"));
  await page.locator("section.failure").waitFor();
  assert.equal(await wider_by(page), 0);
});

test("light or dark is the system's choice until the reader makes one, which stays", async (t) => {
  const job = await start_speakers(t, 1);
  const page = await open_page(t, job.url, { dark: true });
  await is_state(page, "running");
  const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const dark = await background();
  await check_axe(page, "dark");
  await page.getByRole("button", { name: "Light colours" }).click();
  const light = await background();
  assert.notEqual(light, dark);
  await page.reload();
  await is_state(page, "running");
  assert.equal(await background(), light);
});

test("a killed run is shown as what it was", async (t) => {
  const run = new RecordedRun(join(make_folder(t), "run"), { nodes: 1, workers: 4 });
  run.begin(0);
  run.exit(0, 2, 0);
  const server = await view(t, run.write());
  const page = await open_page(t, server.url);
  await is_state(page, "killed");
  await has_cells(page, "lost", 3);
  await has_cells(page, "exited", 1);
  assert.equal(await page.getByRole("button", { name: "Stop …" }).count(), 0);
});
