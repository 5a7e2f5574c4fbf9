// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { contrast, css, readable } from "../src/logs/colour";
import { Level, level_of, level_pattern } from "../src/logs/level";

const kLines: [string, Level][] = [
  ["2026-11-30 12:00:01,123 - train - ERROR - cannot read", Level.kError],
  ["[INFO] 0 errors so far, error: none", Level.kInfo],
  ["\x1b[31mERROR\x1b[0m bad", Level.kError],
  ["WARNING:root:slow", Level.kWarning],
  ["W1130 12:00:01.123 4242 file.cc:1] x", Level.kWarning],
  ["[E1130 12:00:01.123 NCCL] x", Level.kError],
  ["Traceback (most recent call last):", Level.kError],
  ['  File "train.py", line 10, in <module>', Level.kError],
  ["ValueError: bad shape", Level.kError],
  ["torch.cuda.OutOfMemoryError: CUDA out of memory.", Level.kError],
  ["KeyboardInterrupt", Level.kError],
  ["train.py:3: UserWarning: slow", Level.kWarning],
  ["main.c:3:1: error: expected", Level.kError],
  ["node1:77:88 [0] NCCL WARN Connect failed", Level.kWarning],
  ["DEBUG step", Level.kDebug],
  ["step 12 loss 0.93", Level.kNone],
  ["terrors: of the deep", Level.kNone],
  ["no error here", Level.kNone],
];

test("levels are guessed from words, not from prose", () => {
  for (const [line, level] of kLines) assert.equal(level_of(line), level, line);
});

test("the server's pattern finds whatever the guess would call that bad", () => {
  for (const level of [Level.kDebug, Level.kInfo, Level.kWarning, Level.kError]) {
    const pattern = new RegExp(level_pattern(level));
    for (const [line, of] of kLines) {
      if (of >= level) assert.match(line, pattern);
    }
  }
  assert.doesNotMatch("step 12 loss 0.93", new RegExp(level_pattern(Level.kDebug)));
});

test("a colour is changed only as far as it must be to be read", () => {
  assert.equal(readable(0xffffff, 0x101010), 0xffffff);
  for (const background of [0x101418, 0xffffff]) {
    for (const rgb of [0, 0xffffff, 0xff0000, 0x0000ff, 0x808080, 0xffff00]) {
      assert.ok(contrast(readable(rgb, background), background) >= 4.5, css(rgb));
    }
  }
  assert.equal(css(0x00ff0a), "#00ff0a");
});
