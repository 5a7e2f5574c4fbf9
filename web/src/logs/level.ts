// SPDX-License-Identifier: Apache-2.0
// How bad a line is, guessed from its words. The same words make the regular expression with which
// the server looks for such lines in whole logs (RE2 there, so: no look-around), which finds a few
// too many; `level_of` then decides, so that both agree.

import { plain_text } from "./ansi";

export const enum Level {
  kNone = 0,
  kDebug = 1,
  kInfo = 2,
  kWarning = 3,
  kError = 4,
}

export const kLevelNames = ["all", "debug", "info", "warning", "error"] as const;

// A word that a logger writes to say what a line is. Capitals, so that prose is not one.
const kWords: [Level, string][] = [
  [Level.kError, "ERROR|ERR|FATAL|CRITICAL|CRIT|SEVERE|PANIC|EMERG|ALERT"],
  [Level.kWarning, "WARNING|WARN"],
  [Level.kInfo, "INFO|NOTICE"],
  [Level.kDebug, "DEBUG|TRACE|VERBOSE"],
];
// The letter with which a glog line begins: "W1130 12:00:01".
const kLetters: [Level, string][] = [
  [Level.kError, "[EF]"],
  [Level.kWarning, "W"],
  [Level.kInfo, "I"],
  [Level.kDebug, "D"],
];
// What says so by itself, whoever printed it.
const kSigns: [Level, string[]][] = [
  [
    Level.kError,
    [
      "Traceback \\(most recent call last\\)",
      '^ *File "[^"]+", line [0-9]+',
      "[A-Za-z](?:Error|Exception|Interrupt)(?::|$|\\()",
      "(?:^|[^A-Za-z0-9_])(?:[Ee]rror|fatal|panic|Fatal|critical|exception|Exception): ",
      "Segmentation fault|core dumped|terminate called|Assertion .*failed|AddressSanitizer|CUDA error|[Oo]ut of memory|NCCL error",
    ],
  ],
  [
    Level.kWarning,
    [
      "(?:^|[^A-Za-z0-9_])[Ww]arning: ",
      "[A-Za-z]Warning(?::|$)",
      "NCCL WARN",
      "(?:^|[^A-Za-z])[Dd]eprecated",
    ],
  ],
];

// Only a line's beginning is looked at for a logger's word.
const kHead = 120;
const kLook = 2000;

const word_rule = new RegExp(
  `(?:^|[^A-Za-z0-9_])(?:${kWords.map(([, words]) => `(${words})`).join("|")})(?![A-Za-z0-9_])`,
);
const letter_rule = new RegExp(
  `^\\[?(?:${kLetters.map(([, letter]) => `(${letter})`).join("|")})[0-9]{4} [0-9:.]+`,
);
const sign_rules = kSigns.map(
  ([level, signs]) => [level, new RegExp(signs.map((s) => `(?:${s})`).join("|"))] as const,
);

export function level_of(raw: string): Level {
  const text = plain_text(raw.length > kLook ? raw.slice(0, kLook) : raw);
  const found = letter_rule.exec(text) ?? word_rule.exec(text.slice(0, kHead));
  if (found) return kWords[found.slice(1).findIndex((group) => group !== undefined)]![0];
  for (const [level, rule] of sign_rules) {
    if (rule.test(text)) return level;
  }
  return Level.kNone;
}

// For the server: lines that may be of `level` or above. A colour may stand before the word.
export function level_pattern(level: Level): string {
  const from = (rules: [Level, string][]) => rules.filter(([of]) => of >= level).map(([, rule]) => rule);
  const words = `(?:^|[^A-Za-z0-9_]|\\x1b\\[[0-9;]*m)(?:${from(kWords).join("|")})(?:[^A-Za-z0-9_]|$)`;
  const letters = `^(?:\\x1b\\[[0-9;]*m)?\\[?(?:${from(kLetters).join("|")})[0-9]{4} [0-9:.]+`;
  const signs = kSigns.filter(([of]) => of >= level).flatMap(([, list]) => list);
  return [words, letters, ...signs].map((part) => `(?:${part})`).join("|");
}
