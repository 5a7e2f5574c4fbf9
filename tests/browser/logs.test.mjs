// SPDX-License-Identifier: Apache-2.0
// The log view in a real browser, of real jobs.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { test } from "node:test";
import {
  check_axe,
  current_row,
  kLineBytes,
  make_run,
  open_page,
  start_muster,
  start_speakers,
  start_wire,
  visible_rows,
  visible_texts,
  wait_for_text,
  wait_until,
  write_big_log,
} from "./harness.mjs";

const kOne = "#/logs?attempt=0&ranks=0&streams=stdout";

function numbered(from, count, name = "line") {
  return Array.from({ length: count }, (_, i) => `${name} ${from + i}\n`).join("");
}

async function view_run(t, run) {
  return start_muster(t, ["view", run.folder, "--http", "127.0.0.1:0"]);
}

const where = (page) => page.textContent(".log-status .where");
const link_text = (page) => page.textContent(".log-status .link");

test("lines appear as they are written, and the view stays at the end", async (t) => {
  const job = await start_speakers(t, 1);
  const page = await open_page(t, job.at(kOne));
  job.say("hello\n");
  await wait_for_text(page, "hello");
  job.say(numbered(0, 500));
  await wait_for_text(page, "line 499");
  job.say("an unfinished");
  await wait_for_text(page, "an unfinished");
  job.say(" line\n");
  await wait_for_text(page, "an unfinished line");
  const texts = await visible_texts(page);
  assert.equal(texts.at(-1), "an unfinished line");
  assert.equal(texts.filter((text) => text.startsWith("an unfinished")).length, 1);
});

test("a progress bar is one row that changes", async (t) => {
  const job = await start_speakers(t, 1);
  const page = await open_page(t, job.at(kOne));
  job.say("before\n");
  for (let i = 0; i <= 2_000; ++i)
    job.say(`\r${String(Math.floor(i / 20)).padStart(3)}%|${"#".repeat(i / 50).padEnd(40)}| ${i}/2000`);
  await wait_for_text(page, "2000/2000");
  assert.equal((await visible_rows(page)).length, 2);
  job.say("\nafter\n");
  await wait_for_text(page, "after");
  const texts = await visible_texts(page);
  assert.deepEqual([texts[0], texts.at(-1), texts.length], ["before", "after", 3]);
  assert.match(texts[1], /^100%.*2000\/2000$/);
});

test("scrolling up pauses, new lines are counted, and the end is one key away", async (t) => {
  const job = await start_speakers(t, 1);
  const page = await open_page(t, job.at(kOne));
  job.say(numbered(0, 1_000));
  await wait_for_text(page, "line 999");
  await page.mouse.move(600, 400);
  await page.mouse.wheel(0, -2_000);
  await wait_until(async () => (await link_text(page)).includes("paused"), "it is paused");
  const seen = await visible_texts(page);
  job.say(numbered(1_000, 300));
  await wait_until(
    async () => (await page.textContent(".log-badge").catch(() => ""))?.includes("300"),
    "300 are counted",
  );
  assert.deepEqual(await visible_texts(page), seen);
  await page.keyboard.press("G");
  await wait_for_text(page, "line 1299");
  assert.match(await link_text(page), /following/);
  assert.equal(await page.locator(".log-badge").count(), 0);
});

test("several ranks are merged, said the same once, each in its colour", async (t) => {
  const job = await start_speakers(t, 4);
  const page = await open_page(t, job.at("#/logs?attempt=0&ranks=0-3&streams=stdout,stderr"));
  for (let rank = 0; rank < 4; ++rank) job.say("all say this\n", { rank });
  await wait_until(
    async () => (await visible_rows(page)).some((row) => row.label === "0-3"),
    "they are one row",
  );
  job.say("two alone\n", { rank: 2, stream: "stderr" });
  await wait_for_text(page, "two alone");
  const rows = await visible_rows(page);
  assert.deepEqual(
    rows.map((row) => [row.label, row.text]),
    [
      ["0-3", "all say this"],
      ["2 err", "two alone"],
    ],
  );
  const colours = await page.$$eval(".row .r", (cells) =>
    cells.map((cell) => getComputedStyle(cell).color),
  );
  assert.notEqual(colours[0], colours[1]);
  await page.keyboard.press("x");
  await wait_until(async () => (await visible_rows(page)).length === 5, "they are unfolded");
});

test("errors are found with one key, and alone with the filter", async (t) => {
  const job = await start_speakers(t, 1);
  job.say(numbered(0, 2_000));
  job.say(
    'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\n    x\nNameError: x\n',
  );
  job.say(numbered(2_000, 2_000));
  job.say("[ERROR] the second\n");
  job.say(numbered(4_000, 2_000));
  const page = await open_page(t, job.at(kOne));
  await wait_for_text(page, "line 5999");
  await page.keyboard.press("E");
  await wait_until(
    async () => (await current_row(page))?.text === "[ERROR] the second",
    "the last error is shown",
  );
  await page.keyboard.press("E");
  await wait_until(
    async () => (await current_row(page))?.text.startsWith("Traceback"),
    "the first error is shown",
  );
  await page.keyboard.press("e");
  await wait_until(
    async () => (await current_row(page))?.text === "[ERROR] the second",
    "the next error is shown",
  );
  await page.selectOption(".log-tools select.active, .log-tools select", { label: "errors" });
  await wait_until(async () => (await visible_texts(page)).length === 4, "only errors are shown");
  job.say("nothing\nRuntimeError: live\n");
  await wait_for_text(page, "RuntimeError: live");
  assert.ok(!(await visible_texts(page)).includes("nothing"));
});

test("a search counts, steps, marks, and loads far places", async (t) => {
  const run = make_run(t);
  write_big_log(run.log(0), 300_000, (i) => (i % 100_000 === 77 ? "needle-7" : ""));
  const muster = await view_run(t, run);
  const page = await open_page(t, muster.at(kOne));
  await wait_for_text(page, "step 0000299999");
  await page.keyboard.press("g");
  await page.keyboard.press("g");
  await wait_for_text(page, "step 0000000000");
  await page.keyboard.press("/");
  await page.keyboard.type("needle-[0-9]");
  await page.click(".find button[aria-label='Regular expression']");
  await wait_until(async () => (await page.textContent(".found")).includes("1 of 3"), "three are found");
  assert.match((await current_row(page)).text, /^step 0000000077 /);
  assert.equal(await page.textContent(".row.current mark"), "needle-7");
  await page.focus(".log-scroll");
  await page.keyboard.press("n");
  await wait_until(
    async () => (await current_row(page))?.text.startsWith("step 0000100077"),
    "the second is shown",
  );
  // What stands around it is there too.
  assert.ok((await visible_texts(page)).some((text) => text.startsWith("step 0000100078")));
  await page.keyboard.press("N");
  await wait_until(
    async () => (await current_row(page))?.text.startsWith("step 0000000077"),
    "back at the first",
  );
  assert.match(await page.textContent(".found"), /1 of 3/);
});

test("all logs are searched, and what is found leads to its place", async (t) => {
  const run = make_run(t, 3);
  for (let rank = 0; rank < 3; ++rank)
    writeFileSync(run.log(rank), `${numbered(0, 50)}odd one of ${rank}\n${numbered(50, 50)}`);
  const muster = await view_run(t, run);
  const page = await open_page(t, muster.at("#/search"));
  await page.fill("input[name=q]", "odd one");
  await page.keyboard.press("Enter");
  await wait_until(
    async () => (await page.textContent(".found")).includes("3 hits"),
    "all three are found",
  );
  await wait_for_text(page, "odd one of 0");
  const texts = await visible_texts(page);
  assert.deepEqual(texts.slice(0, 5), ["line 48", "line 49", "odd one of 0", "line 50", "line 51"]);
  await check_axe(page, "search");
  await page.click(".row:has-text('odd one of 2') .r a");
  await wait_until(async () => (await current_row(page))?.text === "odd one of 2", "its place is shown");
});

test("a line's address leads back to it", async (t) => {
  const run = make_run(t);
  write_big_log(run.log(0), 50_000);
  const muster = await view_run(t, run);
  const page = await open_page(t, muster.at(`${kOne}&line=31234`));
  await wait_until(
    async () => (await current_row(page))?.text.startsWith("step 0000031234"),
    "the line is shown",
  );
  await page.keyboard.press("j");
  await wait_until(
    () => page.url().includes(`offset=${31_235 * kLineBytes}`),
    "the address names the line",
  );
  const again = await open_page(t, muster.at(new URL(page.url()).hash));
  await wait_until(
    async () => (await current_row(again))?.text.startsWith("step 0000031235"),
    "it is shown again",
  );
  await page.keyboard.press("Y");
  await wait_until(
    async () =>
      (await page.evaluate(() => navigator.clipboard.readText())).includes(
        `offset=${31_235 * kLineBytes}`,
      ),
    "the address is copied",
  );
});

test("everything can be done with the keyboard", async (t) => {
  const job = await start_speakers(t, 2);
  job.say(numbered(0, 300));
  job.say("to stderr\n", { stream: "stderr" });
  job.say("of rank 1\n", { rank: 1 });
  const page = await open_page(t, job.at(kOne));
  await wait_for_text(page, "line 299");
  const press = async (...keys) => {
    for (const key of keys) await page.keyboard.press(key);
  };
  await press("g", "g");
  await wait_until(async () => (await visible_texts(page))[0] === "line 0", "the beginning is shown");
  await press("j", "j", "k");
  await wait_until(async () => (await current_row(page)) !== undefined, "a line is current");
  await press("v", "j", "j", "y");
  await wait_until(
    async () => (await page.evaluate(() => navigator.clipboard.readText())).split("\n").length === 3,
    "three lines are copied",
  );
  assert.match(
    await page.evaluate(() => navigator.clipboard.readText()),
    /^line \d+\nline \d+\nline \d+$/,
  );
  await press("Escape", "t");
  await wait_until(async () => (await page.locator(".row .t").count()) > 0, "times are shown");
  await press("w");
  await wait_until(async () => (await page.locator(".row.wrap").count()) > 0, "lines are wrapped");
  await press("w", "t", ":");
  await page.keyboard.type("200");
  await press("Enter");
  await wait_until(async () => (await current_row(page))?.text === "line 199", "line 200 is shown");
  await press("2");
  await wait_for_text(page, "to stderr");
  await press("1", ">");
  await wait_for_text(page, "of rank 1");
  await press("a");
  await wait_for_text(page, "line 299");
  job.say("more of rank 1\n", { rank: 1 });
  await wait_until(
    async () => (await visible_rows(page)).some((row) => row.label === "1"),
    "all are merged",
  );
  await press("?");
  await page.waitForSelector("dialog[open]");
  assert.match(await page.textContent("dialog"), /next error/);
  await press("Escape");
  await page.waitForSelector("dialog[open]", { state: "detached" });
  await press("f");
  await wait_until(async () => (await link_text(page)).includes("paused"), "it is paused");
  await press("f");
  await wait_until(async () => (await link_text(page)).includes("following"), "it follows");
});

const kHostile = [
  "plain before",
  "<script>window.pwned = 1</script><img src=x onerror='window.pwned = 1'><style>*{display:none}</style>",
  "</div></div><a href='javascript:window.pwned=1'>x</a>",
  "\x1b]8;;javascript:window.pwned=1\x1b\\link\x1b]8;;\x1b\\ \x1b]0;title\x07 \x1b]52;c;cHduZWQ=\x07",
  "\x1b[2J\x1b[H\x1b[10A\x1b[?1049h\x1bc\x1b[999999999Cfar",
  "\u202eoverride \u2067isolate \u2066\u2068 never closed",
  "שלום עולם mixed العربية",
  "zero\u200b\u200c\u200d\ufeffwidth",
  `tower ${"A\u0301\u0302\u0303\u0316\u0317\u0489".repeat(3)}${"\u0301".repeat(500)}`,
  "nul \0 bell \x07 del \x7f c1 \x85 \u2028 \u2029 \v \f end",
  "\x1b]unterminated string goes on",
  "\x1b[38;2;1;1;1mdark\x1b[0m \x1b[38;5;15mwhite\x1b[0m \x1b[41;31mred on red\x1b[0m \x1b[7minverse",
  "𝕏 ﷽ ꧅ 👩‍👩‍👧‍👦 ｗｉｄｅ",
  "plain after",
];

test("hostile bytes run nothing, hide nothing and stay in their row", async (t) => {
  const job = await start_speakers(t, 1);
  job.say(`${kHostile.join("\n")}\n`);
  job.say(Buffer.from([0xff, 0xfe, 0xc3, 0x28, 0x0a]).toString("latin1"));
  job.say("last\n");
  const page = await open_page(t, job.at(kOne));
  await wait_for_text(page, "last");
  const rows = await visible_rows(page);
  assert.equal(rows.length, kHostile.length + 2);
  for (const row of rows) assert.equal(row.height, rows[0].height, row.text);
  for (let i = 1; i < rows.length; ++i)
    assert.equal(Math.round(rows[i].top - rows[i - 1].top), rows[0].height);
  assert.equal(rows[0].text, kHostile[0]);
  assert.equal(rows[1].text, kHostile[1]);
  assert.equal(rows[3].text.trim(), "link");
  assert.match(rows[5].text, /^<U\+202E>override <U\+2067>isolate/);
  assert.match(rows[10].text, /unterminated string goes on$/);
  assert.equal(rows[kHostile.length - 1].text, "plain after");
  assert.doesNotMatch(await page.title(), /^title/);
  assert.equal(
    await page.locator(".log-canvas a, .log-canvas img, .log-canvas script, .log-canvas style").count(),
    0,
  );
  const outside = await page.$$eval(
    ".log-canvas *",
    (nodes) =>
      nodes.filter((node) => {
        const row = node.closest(".row");
        return row && getComputedStyle(row).overflow !== "hidden";
      }).length,
  );
  assert.equal(outside, 0);
  await check_axe(page, "hostile lines");
});

test("a line of megabytes is cut, shown in pieces, and holds nothing up", async (t) => {
  const run = make_run(t);
  writeFileSync(run.log(0), `first\n${"x".repeat(5_000_000)}\nlast\n`);
  const muster = await view_run(t, run);
  const page = await open_page(t, muster.at(kOne));
  await wait_for_text(page, "last");
  const length = () => page.$eval(".row:has(.more) .x", (cell) => cell.textContent.length);
  assert.ok((await length()) < 10_000);
  assert.deepEqual(
    (await visible_rows(page)).map((row) => row.height),
    [20, 20, 20],
  );
  for (const least of [16_000, 60_000, 200_000]) {
    await page.click(".row .more button");
    await wait_until(async () => (await length()) >= least, `${least} characters are shown`);
  }
  await page.keyboard.press("G");
  await wait_for_text(page, "last");
});

test("copying takes the text without numbers, also of rows that are not drawn", async (t) => {
  const run = make_run(t);
  writeFileSync(run.log(0), numbered(0, 2_000));
  const muster = await view_run(t, run);
  const page = await open_page(t, muster.at(kOne));
  await wait_for_text(page, "line 1999");
  await page.keyboard.press("g");
  await page.keyboard.press("g");
  await wait_for_text(page, "line 0");
  const box = await page.locator(".row .x").first().boundingBox();
  await page.mouse.move(box.x + 1, box.y + 10);
  await page.mouse.down();
  await page.mouse.move(box.x + 300, box.y + 200, { steps: 4 });
  await page.mouse.wheel(0, 4_000);
  await wait_until(async () => (await visible_texts(page))[0] !== "line 0", "it has scrolled");
  await page.mouse.move(box.x + 300, box.y + 202, { steps: 4 });
  await page.mouse.up();
  await page.keyboard.press("Control+c");
  const copied = (await page.evaluate(() => navigator.clipboard.readText())).split("\n");
  assert.ok(copied.length > 100, `${copied.length} lines`);
  copied.slice(1, -1).forEach((text, i) => assert.equal(text, `line ${i + 1}`));
});

test("a gigabyte opens at its end, any line is near, and the tab stays small", async (t) => {
  const run = make_run(t);
  write_big_log(run.log(0), 10_000_000);
  const muster = await view_run(t, run);
  const page = await open_page(t, muster.at(kOne));
  await wait_for_text(page, "step 0009999999");
  const began = Date.now();
  for (const line of [5_000_000, 1, 9_999_000, 1_234_567]) {
    await page.keyboard.press(":");
    await page.keyboard.type(String(line));
    await page.keyboard.press("Enter");
    const text = `step ${String(line - 1).padStart(10, "0")}`;
    await wait_until(
      async () => (await current_row(page))?.text.startsWith(text),
      `line ${line} is shown`,
    );
  }
  assert.ok(Date.now() - began < 20_000);
  await page.mouse.move(600, 400);
  for (let i = 0; i < 100; ++i) await page.mouse.wheel(0, 2_000);
  await wait_until(
    async () => (await visible_texts(page))[0]?.localeCompare("step 0001240000") > 0,
    "it has scrolled far",
  );
  const numbers = (await visible_rows(page)).map((row) => Number(row.number));
  numbers.forEach((number, i) => assert.equal(number, numbers[0] + i));
  assert.ok((await page.locator(".row").count()) < 300);
  assert.match(await where(page), /of 10,000,000/);
  const heap = await page.evaluate(() => performance.memory.usedJSHeapSize);
  assert.ok(heap < 100e6, `${heap} bytes of script memory`);
});

test("many ranks that write fast are drawn, not drowned in", async (t) => {
  const job = await start_speakers(t, 8);
  const page = await open_page(t, job.at("#/logs?attempt=0&ranks=0-7&streams=stdout"));
  for (let round = 0; round < 40; ++round) {
    for (let rank = 0; rank < 8; ++rank)
      job.say(numbered(round * 500, 500, `rank ${rank} says`), { rank });
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  await wait_for_text(page, "says 19999");
  for (let rank = 0; rank < 8; ++rank) job.say(`rank ${rank} is done\n`, { rank });
  await wait_for_text(page, "is done");
  assert.ok((await page.locator(".row").count()) < 300);
  // Everything is there, however fast it came: each rank's lines in order, none left out.
  await page.mouse.move(600, 400);
  const last = new Map();
  for (let i = 0; i < 30; ++i) {
    await page.mouse.wheel(0, -600);
    await page.waitForTimeout(30);
  }
  await wait_until(
    async () => !(await visible_rows(page)).some((row) => row.classes.includes("gap")),
    "what was left out is loaded",
  );
  for (const row of await visible_rows(page)) {
    const [, rank, number] = /^rank (\d) says (\d+)$/.exec(row.text) ?? [];
    if (rank === undefined) continue;
    if (last.has(rank)) assert.equal(Number(number), last.get(rank) + 1, row.text);
    last.set(rank, Number(number));
  }
  assert.ok(last.size > 0);
});

test("a server that was stopped is reached again without gap or repeat", async (t) => {
  const job = await start_speakers(t, 1);
  const wire = await start_wire(t);
  const page = await open_page(t, job.at(kOne), { wire });
  job.say(numbered(0, 5));
  await wait_for_text(page, "line 4");
  job.signal("SIGSTOP");
  job.say(numbered(5, 5));
  await page.waitForTimeout(500);
  assert.deepEqual(await visible_texts(page), ["line 0", "line 1", "line 2", "line 3", "line 4"]);
  job.signal("SIGCONT");
  await wait_for_text(page, "line 9");
  // And the same when its connections are lost.
  wire.set_whole(false);
  job.say(numbered(10, 5));
  await wait_until(
    async () => /gone|trying/.test(await link_text(page)),
    "it says that the server is gone",
  );
  assert.equal((await visible_texts(page)).at(0), "line 0");
  wire.set_whole(true);
  await wait_for_text(page, "line 14");
  assert.deepEqual(await visible_texts(page), numbered(0, 15).trim().split("\n"));
});

test("dark, light and narrow: readable for everybody", async (t) => {
  const job = await start_speakers(t, 3);
  const colours = Array.from(
    { length: 16 },
    (_, i) => `\x1b[${i < 8 ? 30 + i : 82 + i}mcolour ${i}\x1b[0m`,
  ).join(" ");
  for (let rank = 0; rank < 3; ++rank) {
    job.say(
      `${colours}\n\x1b[38;5;52mdeep red\x1b[0m \x1b[38;2;255;255;200mpale\x1b[0m\nERROR bad\nWARNING so so\nDEBUG x\n`,
      { rank },
    );
    job.say(`${rank} has a long line ${"word ".repeat(60)}\n`, { rank, stream: "stderr" });
  }
  for (const options of [{}, { dark: true }, { width: 390, height: 760, touch: true }]) {
    const page = await open_page(t, job.at("#/logs?attempt=0&ranks=0-2&streams=stdout,stderr"), options);
    await wait_for_text(page, "2 has a long line");
    await page.keyboard.press("j");
    await check_axe(page, JSON.stringify(options));
    const wide = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
    assert.ok(!wide, "the page is wider than its window");
    if (options.width) assert.ok((await page.locator(".row.wrap").count()) > 0);
  }
});

test("a log is downloaded without being loaded", async (t) => {
  const job = await start_speakers(t, 2);
  job.say(numbered(0, 10));
  const page = await open_page(t, job.at(kOne));
  await wait_for_text(page, "line 9");
  const [download] = await Promise.all([page.waitForEvent("download"), page.keyboard.press("d")]);
  assert.match(download.suggestedFilename(), /\.log$/);
  await page.keyboard.press("a");
  await wait_until(
    async () => (await page.getAttribute(".log-status .download", "href"))?.includes("/api/v1/download"),
    "several are an archive",
  );
  const [archive] = await Promise.all([page.waitForEvent("download"), page.keyboard.press("d")]);
  assert.match(archive.suggestedFilename(), /\.tar\.gz$/);
});
