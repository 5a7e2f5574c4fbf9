// SPDX-License-Identifier: Apache-2.0
// Text of others is shown as text and never as anything else. Characters that act on what stands
// around them (direction overrides, zero-width ones, control characters) are made visible, colours
// of terminals are left out. Log lines have rules of their own.

const kColours = /\x1b\[[0-9;:]*m/g;
const kActing =
  /[\0-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;
// The same in JSON, as they are or escaped.
const kActingInJson =
  /[\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|\\u(?:00[01789]|00ad|061c|180e|200[bef]|202|206|feff|fff[9ab])|\\[bfr]/i;

function picture(character: string): string {
  const code = character.charCodeAt(0);
  if (code < 0x20) return String.fromCharCode(0x2400 + code); // "␛"
  return `⟨U+${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
}

export function inert_text(text: string): string {
  return text.replace(kColours, "").replace(kActing, picture);
}

// JSON of the server's with every string made inert. Most has nothing to be changed.
export function parse_inert<T>(json: string): T {
  if (!kActingInJson.test(json)) return JSON.parse(json) as T;
  return JSON.parse(json, (_, value: unknown) =>
    typeof value === "string" ? inert_text(value) : value,
  ) as T;
}
