// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { Flag, kRgb, parse_line, plain_text, type Span } from "../src/logs/ansi";

const shown = (text: string) =>
  parse_line(text)
    .map((span) => span.text)
    .join("");
const only = (text: string): Span => {
  const spans = parse_line(text);
  assert.equal(spans.length, 1, JSON.stringify(spans));
  return spans[0]!;
};

test("plain text is one span as it is", () => {
  assert.deepEqual(parse_line("<b>step 1</b>"), [
    { text: "<b>step 1</b>", style: null, symbol: false, hit: false },
  ]);
  assert.deepEqual(parse_line(""), []);
});

test("the sixteen colours, their bright ones, and back to none", () => {
  const spans = parse_line("a\x1b[31mb\x1b[1;92;44mc\x1b[mz");
  assert.deepEqual(
    spans.map((s) => [s.text, s.style?.fg, s.style?.bg, s.style?.flags]),
    [
      ["a", undefined, undefined, undefined],
      ["b", 1, -1, 0],
      ["c", 10, 4, Flag.kBold],
      ["z", undefined, undefined, undefined],
    ],
  );
});

test("256 and true colours in both spellings", () => {
  assert.equal(only("\x1b[38;5;9mx").style!.fg, 9);
  assert.equal(only("\x1b[38;5;196mx").style!.fg, kRgb + 0xff0000);
  assert.equal(only("\x1b[48;5;244mx").style!.bg, kRgb + 0x808080);
  assert.equal(only("\x1b[38;2;1;2;3mx").style!.fg, kRgb + 0x010203);
  assert.equal(only("\x1b[38:2::1:2:3mx").style!.fg, kRgb + 0x010203);
  assert.equal(only("\x1b[38:5:196mx").style!.fg, kRgb + 0xff0000);
  assert.deepEqual(only("\x1b[38;2;1;2;3;1;4mx").style!.flags, Flag.kBold | Flag.kUnderline);
  assert.equal(only("\x1b[38;5;999mx").style, null);
  assert.equal(only("\x1b[38;2;1mx").style, null);
});

test("attributes are set and cleared apart", () => {
  assert.equal(only("\x1b[1;2;3;4;7;9mx").style!.flags, 63);
  assert.equal(only("\x1b[1;2;4m\x1b[22mx").style!.flags, Flag.kUnderline);
  assert.equal(only("\x1b[4:3mx").style!.flags, Flag.kUnderline);
  assert.equal(only("\x1b[4m\x1b[4:0mx").style, null);
  assert.equal(only("\x1b[>4;1mx").style, null);
});

test("a progress bar shows its last state", () => {
  assert.equal(shown("  0%|   | 0/9\r 50%|#  | 5/9\r100%|###| 9/9"), "100%|###| 9/9");
  assert.equal(shown("long old text\rnew"), "new" + "g old text");
  assert.equal(shown("long old text\r\x1b[Knew"), "new");
  assert.equal(shown("long old text\r\x1b[2Knew"), "new");
  assert.equal(shown("done\r"), "done");
  assert.equal(shown("abc\b\bX"), "aXc");
  assert.equal(shown("abc\x1b[1GX\x1b[5GY"), "Xbc Y");
  assert.equal(shown("abc\x1b[2DX"), "aXc");
  assert.equal(shown("a\x1b[3Cb"), "a   b");
});

test("no cursor command makes a row huge", () => {
  assert.ok(shown("\x1b[999999999Cx").length <= 4097);
  assert.ok(shown("\x1b[999999999999999999999Gx").length <= 4097);
});

test("titles, links, clipboard and screen commands leave nothing", () => {
  assert.equal(shown("a\x1b]0;title\x07b"), "ab");
  assert.equal(shown("\x1b]8;;http://evil\x1b\\text\x1b]8;;\x1b\\"), "text");
  assert.equal(shown("a\x1b]52;c;cm0=\x07b"), "ab");
  assert.equal(shown("a\x1b[2J\x1b[H\x1b[?1049h\x1bcb"), "ab");
  assert.equal(shown("a\x1bPq#0\x1b\\b\x1b(Bc\x1b7d"), "abcd");
});

test("an incomplete sequence hides nothing", () => {
  assert.equal(shown("a\x1b]0;rest of the line"), "a\u241b]0;rest of the line");
  assert.equal(shown("a\x1b["), "a\u241b[");
  assert.equal(shown("a\x1b"), "a\u241b");
  assert.equal(shown("a\x1b[31"), "a\u241b[31");
});

test("controls and invisible characters become symbols", () => {
  const spans = parse_line("a\0b\x7f\x85");
  assert.equal(spans.map((s) => s.text).join(""), "a\u2400b\u2421<U+0085>");
  assert.deepEqual(
    spans.map((s) => s.symbol),
    [false, true, false, true],
  );
  assert.equal(
    shown("x\u202ey\u2066z\u200b\ufeff\u2028"),
    "x<U+202E>y<U+2066>z<U+200B><U+FEFF><U+2028>",
  );
  assert.equal(shown("\u{e0041}"), "<U+E0041>");
  assert.equal(shown("a\tb"), "a\tb");
});

test("marks stay with their letter when a line is redrawn", () => {
  assert.equal(shown("e\u0301x\rab"), "ab");
  assert.equal(shown("e\u0301x\ra"), "ax");
  assert.equal(shown("👩‍🚀\tok"), "👩‍🚀\tok");
});

test("what was found is marked in the line as shown", () => {
  const spans = parse_line("\x1b[31mfind\x1b[0m me", [[5, 9]]);
  assert.deepEqual(
    spans.map((s) => [s.text, s.hit]),
    [
      ["find", true],
      [" me", false],
    ],
  );
  const two = parse_line("aXbX", [
    [1, 2],
    [3, 4],
  ]);
  assert.deepEqual(
    two.map((s) => [s.text, s.hit]),
    [
      ["a", false],
      ["X", true],
      ["b", false],
      ["X", true],
    ],
  );
});

test("every byte sequence gives text without controls", () => {
  let seed = 7;
  const next = (n: number) => (seed = (seed * 1103515245 + 12345) & 0x7fffffff) % n;
  const pool = [
    "\x1b",
    "[",
    "]",
    "m",
    "K",
    "1",
    ";",
    ":",
    "38",
    "\r",
    "\b",
    "\x07",
    "\\",
    "P",
    "a",
    "\u202e",
    "\0",
    "\u0301",
  ];
  for (let round = 0; round < 3000; ++round) {
    let text = "";
    for (let i = next(30); i > 0; --i) text += pool[next(pool.length)];
    // eslint-disable-next-line no-control-regex
    assert.doesNotMatch(shown(text), /[\0-\x08\x0a-\x1f\x7f-\x9f\u202e]/);
    plain_text(text);
  }
});
