// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { inert_text, parse_inert } from "../src/inert";

test("an override of the direction is shown and does nothing", () => {
  assert.equal(inert_text("a\u202eb"), "a⟨U+202E⟩b");
  assert.equal(inert_text("a\u2066\ufeff\u200b"), "a⟨U+2066⟩⟨U+FEFF⟩⟨U+200B⟩");
});

test("a terminal's colours are left out, its other sequences are shown", () => {
  assert.equal(inert_text("\x1b[1;31mred\x1b[0m \x1b[2J"), "red ␛[2J");
});

test("letters of any script, emoji, tabs and line ends stay as they are", () => {
  const text = "שלום नमस्ते 你好 👩‍💻\tx\n";
  assert.equal(inert_text(text), text);
});

for (const [name, json] of [
  ["raw", `{"a":["x\u202e"]}`],
  ["escaped", `{"a":["x\\u202E"]}`],
  ["a control character", `{"a":["x\\u001b[31m\\u202e"]}`],
] as const) {
  test(`JSON with acting characters (${name}) becomes inert`, () => {
    assert.deepEqual(parse_inert(json), { a: ["x⟨U+202E⟩"] });
  });
}
