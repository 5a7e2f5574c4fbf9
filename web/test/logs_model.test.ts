// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { error_block, level_at } from "../src/logs/errors";
import { fold } from "../src/logs/fold";
import { Level } from "../src/logs/level";
import { Layout } from "../src/logs/layout";
import { bytes_left, type Line, make_line, utf8_size } from "../src/logs/lines";
import { parse_logs, parse_spot, place_params } from "../src/logs/place";
import { HitList } from "../src/logs/search";
import { kMaxMessage, SseParser } from "../src/logs/sse";
import { parse_goto } from "../src/logs/status_bar";
import { type Live, LineWindow } from "../src/logs/window";

function line(rank: number, offset: number, text: string, time = 0, ended = true, number = -1): Line {
  return make_line({ attempt: 0, rank, stream: "stdout" }, [
    offset,
    number,
    time,
    text.length,
    ended,
    text,
  ]);
}
function chunk(lines: Line[], at_begin = true, at_end = true) {
  return { lines, at_begin, at_end, facts: {} };
}
function piece(...lines: Line[]): Live {
  const last = lines.at(-1)!;
  const end = last.ended ? last.offset + last.size + 1 : last.offset;
  return { rank: lines[0]!.rank, stream: "stdout", offset: lines[0]!.offset, end, lines };
}
const texts = (lines: readonly Line[]) => lines.map((l) => (l.notice ? `(${l.notice.bytes})` : l.text));

test("identical lines of several ranks are one row", () => {
  const lines = [
    line(0, 0, "a", 1),
    line(1, 0, "a", 2),
    line(0, 2, "b", 3),
    line(1, 2, "b", 4),
    line(2, 0, "a", 5),
  ];
  const rows = fold(lines);
  assert.deepEqual(texts(rows), ["a", "b"]);
  assert.deepEqual(
    rows[0]!.folded!.map((l) => l.rank),
    [1, 2],
  );
});

test("folding keeps the order of each rank's lines and hides nothing that differs", () => {
  // Rank 1 says b before a, so its a cannot stand before its b.
  const rows = fold([line(0, 0, "a", 1), line(1, 0, "b", 2), line(1, 2, "a", 3)]);
  assert.deepEqual(texts(rows), ["a", "b", "a"]);
  assert.deepEqual(texts(fold([line(0, 0, "a", 1), line(0, 2, "a", 2)])), ["a", "a"]);
  assert.deepEqual(texts(fold([line(0, 0, "a", 1), line(1, 0, "a", 9_000_000)])), ["a", "a"]);
  assert.deepEqual(texts(fold([line(0, 0, "", 1), line(1, 0, "", 1)])), ["", ""]);
});

test("a place goes into the address and comes back", () => {
  const none = { attempt: 9, ranks: [9], streams: ["stderr" as const] };
  const one = parse_logs(new URLSearchParams("attempt=1&ranks=3&streams=stdout"), none);
  assert.deepEqual(one, { attempt: 1, ranks: [3], streams: ["stdout"] });
  const params = place_params(one, line(3, 77, "x"));
  assert.deepEqual(parse_spot(params), { kind: "offset", offset: 77 });
  const two = parse_logs(new URLSearchParams("attempt=1&ranks=3-4"), none);
  const at = parse_spot(place_params(two, line(4, 77, "x", 123)));
  assert.deepEqual(at, { kind: "at", time_us: 123, rank: 4, stream: "stdout", offset: 77 });
  assert.deepEqual(parse_logs(new URLSearchParams("attempt=-1&ranks=x&streams=y"), none), none);
  assert.deepEqual(parse_spot(new URLSearchParams("offset=end")), { kind: "end" });
});

test("live pieces are taken once, whatever is sent again", () => {
  const window = new LineWindow();
  window.set(chunk([line(0, 0, "a"), line(0, 2, "b")]));
  assert.equal(window.append_live([piece(line(0, 2, "b"), line(0, 4, "c"))]), 1);
  assert.equal(window.append_live([piece(line(0, 2, "b"), line(0, 4, "c"))]), 0);
  assert.deepEqual(texts(window.lines), ["a", "b", "c"]);
});

test("what was not sent is told as a notice", () => {
  const window = new LineWindow();
  window.set(chunk([line(0, 0, "a", 0, true, 0)]));
  window.append_live([piece(line(0, 100, "z", 0, true, 50))]);
  assert.deepEqual(texts(window.lines), ["a", "(98)", "z"]);
  assert.equal(window.lines[1]!.notice!.lines, 49);
  assert.ok(window.has_skip);
});

test("an unfinished line is replaced by its next state", () => {
  const window = new LineWindow();
  window.set(chunk([line(0, 0, "a")]));
  window.append_live([piece(line(0, 2, "10%", 0, false))]);
  window.append_live([piece(line(0, 2, "10%\r20%", 0, false))]);
  assert.deepEqual(texts(window.lines), ["a", "10%\r20%"]);
  window.append_live([piece(line(0, 2, "10%\r20%\r30%"), line(0, 14, "b"))]);
  assert.deepEqual(texts(window.lines), ["a", "10%\r20%\r30%", "b"]);
});

test("unfinished lines of several ranks stand at the end", () => {
  const window = new LineWindow();
  window.set(chunk([line(0, 0, "a", 1)]));
  window.append_live([piece(line(1, 0, "10%", 2, false)), piece(line(0, 2, "b", 3))]);
  assert.deepEqual(texts(window.in_order()), ["a", "b", "10%"]);
  window.append_live([piece(line(1, 0, "100%", 2), line(1, 5, "c", 4))]);
  assert.deepEqual(texts(window.in_order()), ["a", "100%", "b", "c"]);
});

test("live lines are put in the order of their times", () => {
  const window = new LineWindow();
  window.set(chunk([line(0, 0, "a", 10), line(1, 0, "b", 20)]));
  window.append_live([piece(line(0, 2, "d", 40)), piece(line(1, 2, "c", 15))]);
  assert.deepEqual(texts(window.lines), ["a", "c", "b", "d"]);
});

test("lines older than the window do not come in from the stream", () => {
  const window = new LineWindow();
  window.set(chunk([line(0, 0, "a", 10)], false));
  window.append_live([piece(line(1, 0, "old", 5), line(1, 4, "new", 15))]);
  assert.deepEqual(texts(window.lines), ["a", "new"]);
});

test("the window stays within its bounds at either end", () => {
  const window = new LineWindow(100);
  window.set(chunk([line(0, 0, "a")]));
  for (let i = 1; i < 1000; ++i) window.append_live([piece(line(0, i * 2, "x"))]);
  assert.ok(window.lines.length <= 100);
  assert.equal(window.at_begin, false);
  assert.equal(window.last!.offset, 1998);
  const older = Array.from({ length: 90 }, (_, i) => line(0, 1000 + i * 2, "y"));
  window.prepend(chunk(older, false));
  assert.ok(window.lines.length <= 100);
  assert.equal(window.at_end, false);
  assert.equal(window.first!.offset, 1000);
  const wide = new LineWindow(100, 1000);
  wide.set(chunk([line(0, 0, "a")]));
  for (let i = 0; i < 50; ++i) wide.append_live([piece(line(0, 2 + i * 101, "z".repeat(100)))]);
  assert.ok(wide.lines.length <= 10);
});

test("a page behind the last unfinished line brings it again", () => {
  const window = new LineWindow();
  window.set(chunk([line(0, 0, "a"), line(0, 2, "be", 0, false)], true, false));
  window.append(chunk([line(0, 2, "bed"), line(0, 6, "c")], false, true));
  assert.deepEqual(texts(window.lines), ["a", "bed", "c"]);
});

test("rows are found by their place and keep it when heights change", () => {
  const layout = new Layout();
  assert.equal(layout.at(5), -1);
  layout.reset(1000, () => 20);
  assert.equal(layout.total(), 20_000);
  assert.equal(layout.at(0), 0);
  assert.equal(layout.at(19.9), 0);
  assert.equal(layout.at(20), 1);
  assert.equal(layout.at(1e9), 999);
  assert.ok(layout.set_height(3, 100));
  assert.ok(!layout.set_height(3, 100));
  assert.equal(layout.top(4), 160);
  assert.equal(layout.at(159), 3);
  assert.equal(layout.total(), 20_080);
});

test("event-stream messages are whole however they are cut", () => {
  const whole =
    ': hello\n\nevent: lines\nid: 7\ndata: {"a":\ndata: 1}\n\r\ndata:x\r\n\r\nevent: none\n\n';
  for (let cut = 1; cut < whole.length; ++cut) {
    const got: unknown[] = [];
    const parser = new SseParser((message) => got.push(message));
    for (let at = 0; at < whole.length; at += cut) parser.push(whole.slice(at, at + cut));
    assert.deepEqual(got, [
      { event: "lines", id: "7", data: '{"a":\n1}' },
      { event: "message", id: "", data: "x" },
    ]);
  }
});

test("sizes are counted in bytes", () => {
  for (const text of ["", "abc", "äö", "€", "👩‍🚀"])
    assert.equal(utf8_size(text), Buffer.byteLength(text));
  const cut = make_line({ attempt: 0, rank: 0, stream: "stdout" }, [
    0,
    0,
    0,
    5_000_000,
    true,
    "x".repeat(16384),
  ]);
  assert.equal(bytes_left(cut), 5_000_000 - 16384);
  assert.equal(bytes_left(line(0, 0, "äö")), 0);
});

test("errors are stepped by block, and their source lines belong to them", () => {
  const rows = [
    "ok",
    "Traceback (most recent call last):",
    '  File "a.py", line 1, in f',
    "    x",
    "NameError: x",
    "ok",
    "ok",
    "ok",
    "ok",
    "ERROR two",
    "ok",
  ].map((text, i) => line(0, i * 100, text));
  assert.equal(error_block(rows, 0, 1), 1);
  assert.equal(error_block(rows, 1, 1), 9);
  assert.equal(error_block(rows, 4, 1), 9);
  assert.equal(error_block(rows, 9, 1), -1);
  assert.equal(error_block(rows, 10, -1), 9);
  assert.equal(error_block(rows, 9, -1), 1);
  assert.equal(error_block(rows, 1, -1), -1);
  assert.equal(error_block([], 0, 1), -1);
  assert.equal(level_at(rows, 3), Level.kError);
  assert.equal(level_at(rows, 5), Level.kNone);
});

test("hits are in order, each once, and the next is found from any line", () => {
  const list = new HitList(true);
  for (const offset of [50, 10, 30, 10]) list.add(line(0, offset, "x"));
  assert.deepEqual(
    list.lines().map((l) => l.offset),
    [10, 30, 50],
  );
  assert.equal(list.next(line(0, 20, ""), 1, false), 1);
  assert.equal(list.next(line(0, 30, ""), 1, false), 2);
  assert.equal(list.next(line(0, 30, ""), 1, true), 1);
  assert.equal(list.next(line(0, 30, ""), -1, false), 0);
  assert.equal(list.next(line(0, 5, ""), -1, false), -1);
  assert.equal(list.next(line(0, 60, ""), 1, false), -1);
  assert.equal(list.next(null, 1, false), 0);
  const merged = new HitList(false);
  merged.add(line(1, 0, "x", 5));
  merged.add(line(0, 900, "x", 4));
  assert.deepEqual(
    merged.lines().map((l) => l.rank),
    [0, 1],
  );
});

test("a place to go to is a line, a share, an offset or a time", () => {
  assert.deepEqual(parse_goto("1,000", 500, 0), { kind: "line", line: 999 });
  assert.deepEqual(parse_goto("50%", 500, 0), { kind: "offset", offset: 250 });
  assert.deepEqual(parse_goto("@77", 500, 0), { kind: "offset", offset: 77 });
  const noon = new Date(2026, 10, 30, 12, 0, 1).getTime() * 1000;
  assert.deepEqual(parse_goto("12:00:01", 500, noon - 3_600_000_000), { kind: "time", time_us: noon });
  assert.deepEqual(parse_goto("2026-11-30T12:00:00Z", 0, 0), {
    kind: "time",
    time_us: Date.UTC(2026, 10, 30, 12) * 1000,
  });
  for (const bad of ["", "x", "50%%", "1e9", "@"]) assert.equal(parse_goto(bad, 500, 0), null, bad);
});

test("a message of the stream has a longest length, in one line or in many", () => {
  const one = new SseParser(() => {});
  assert.throws(() => one.push(`data: ${"x".repeat(kMaxMessage)}`));
  const many = new SseParser(() => {});
  const line = `data: ${"x".repeat(1_000_000)}\n`;
  assert.throws(() => {
    for (let i = 0; i <= kMaxMessage / 1_000_000; ++i) many.push(line);
  });
});
