// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  base_name,
  bytes_text,
  clock_text,
  number_text,
  parse_ranks,
  ranks_text,
  shell_text,
  short_id,
  short_ranks_text,
  span_text,
} from "../src/format";

test("a list of ranks is folded and read back", () => {
  assert.equal(ranks_text([5, 0, 2, 1]), "0-2,5");
  assert.equal(short_ranks_text([0, 7, 14, 21, 28], 8), "0,7,14,… (5)");
  assert.deepEqual(parse_ranks("0-2,5"), [0, 1, 2, 5]);
  assert.deepEqual(parse_ranks("x,3-"), []);
  assert.equal(parse_ranks("0-999999999").length, 100_000);
});

test("a clock shows hours only when there are some", () => {
  assert.equal(clock_text(7.9), "0:07");
  assert.equal(clock_text(3_612), "1:00:12");
  assert.equal(clock_text(2 * 86_400 + 61), "2 d 0:01:01");
});

test("spans, sizes and numbers have the digits that count", () => {
  assert.equal(span_text(0.18), "180 ms");
  assert.equal(span_text(11_100), "3 h 5 min");
  assert.equal(bytes_text(1023), "0.999 KiB");
  assert.equal(bytes_text(999), "999 B");
  assert.equal(number_text(0.93), "0.93");
  assert.equal(number_text(480.6), "481");
  assert.equal(number_text(0), "0");
});

test("a path is called by its last part, a random id by its first", () => {
  assert.equal(base_name("/home/ada/train.py"), "train.py");
  assert.equal(base_name("/"), "/");
  assert.equal(short_id("9293af82-3159-454c-bd3d-d8f382cd3c1e"), "9293af82");
  assert.equal(short_id("digits-of-ada"), "digits-of-ada");
});

test("a word that a shell would split is quoted", () => {
  assert.equal(shell_text(["sh", "-c", "echo 'a b'"]), `sh -c 'echo '\\''a b'\\'''`);
});
