// SPDX-License-Identifier: Apache-2.0
// Numbers, times and lists as people read them.

const kUnits = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

// Three digits that count: "0.91", "12.3", "481".
export function number_text(value: number): string {
  const size = Math.abs(value);
  if (!Number.isFinite(value) || value === 0) return String(value);
  if (size !== 0 && (size < 0.001 || size >= 1e6)) return value.toExponential(2);
  if (size < 1) return value.toFixed(3).replace(/0$/, "");
  return size >= 100 ? String(Math.round(value)) : value.toFixed(size >= 10 ? 1 : 2);
}

export function bytes_text(bytes: number): string {
  let unit = 0;
  let value = bytes;
  while (value >= 1000 && unit < kUnits.length - 1) {
    value /= 1024;
    ++unit;
  }
  return `${unit ? number_text(value) : Math.round(value)} ${kUnits[unit]}`;
}

// "0:07", "12:31", "3:00:12", "2 d 3:00:12": does not change its width every second.
export function clock_text(seconds: number): string {
  const whole = Math.max(0, Math.floor(seconds));
  const two = (value: number) => String(value).padStart(2, "0");
  const days = Math.floor(whole / 86_400);
  const hours = Math.floor(whole / 3_600) % 24;
  const minutes = Math.floor(whole / 60) % 60;
  const tail = `${hours || days ? `${hours}:${two(minutes)}` : minutes}:${two(whole % 60)}`;
  return days ? `${days} d ${tail}` : tail;
}

// "180 ms", "4.2 s", "12 min", "3 h 5 min": how long something took, or has been.
export function span_text(seconds: number): string {
  const size = Math.max(0, seconds);
  if (size < 1) return `${Math.round(size * 1_000)} ms`;
  if (size < 60) return `${size < 10 ? size.toFixed(1) : Math.round(size)} s`;
  if (size < 3_600)
    return `${Math.floor(size / 60)} min${size < 600 && Math.round(size % 60) ? ` ${Math.floor(size % 60)} s` : ""}`;
  const hours = Math.floor(size / 3_600);
  if (hours < 48) {
    const minutes = Math.floor((size % 3_600) / 60);
    return `${hours} h${minutes ? ` ${minutes} min` : ""}`;
  }
  return `${Math.floor(hours / 24)} d${hours % 24 ? ` ${hours % 24} h` : ""}`;
}

const kTime = new Intl.DateTimeFormat("en-GB", {
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
});
const kDate = new Intl.DateTimeFormat("en-CA", {
  year: "numeric",
  month: "2-digit",
  day: "2-digit",
});

// Of this browser's time zone; "" if it is not known.
export function time_text(us: number | null | undefined): string {
  return us ? kTime.format(us / 1_000) : "";
}
export function date_time_text(us: number | null | undefined): string {
  if (!us) return "";
  return `${kDate.format(us / 1_000)} ${kTime.format(us / 1_000)}.${String(Math.floor((us / 1_000) % 1_000)).padStart(3, "0")}`;
}

export function plural(count: number, one: string, many = `${one}s`): string {
  return `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
}

// "0-2,5" of [0, 1, 2, 5].
export function ranks_text(ranks: readonly number[]): string {
  const sorted = [...ranks].sort((a, b) => a - b);
  const parts: string[] = [];
  for (let i = 0; i < sorted.length;) {
    let last = i;
    while (sorted[last + 1] === (sorted[last] ?? 0) + 1) ++last;
    parts.push(last > i ? `${sorted[i]}-${sorted[last]}` : `${sorted[i]}`);
    i = last + 1;
  }
  return parts.join(",");
}

// The beginning of such a list, and how many there are, where it is long: "0,7,14,… (300)".
export function short_ranks_text(ranks: readonly number[], length: number): string {
  const text = ranks_text(ranks);
  if (text.length <= length) return text;
  return `${text.slice(0, text.lastIndexOf(",", length))},… (${ranks.length})`;
}

// The ranks that "0-2,5" names, at most `limit` of them.
export function parse_ranks(text: string, limit = 100_000): number[] {
  const ranks: number[] = [];
  for (const part of text.split(",")) {
    const match = /^\s*(\d+)(?:-(\d+))?\s*$/.exec(part);
    if (!match) continue;
    const first = Number(match[1]);
    const last = match[2] === undefined ? first : Number(match[2]);
    for (let rank = first; rank <= last && ranks.length < limit; ++rank) ranks.push(rank);
  }
  return ranks;
}

export function base_name(path: string): string {
  return path.replace(/\/+$/, "").split("/").at(-1) || path;
}

// Of a random id its beginning, as the console has it; a name that somebody chose stays whole.
export function short_id(id: string): string {
  return /^[0-9a-f]{8}-[0-9a-f]{4}-/.test(id) ? id.slice(0, 8) : id;
}

// A command line that a shell would read back as it is.
export function shell_text(words: readonly string[]): string {
  return words
    .map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`))
    .join(" ");
}

// Events have numbers, rows have names.
const kSignals: Record<number, string> = {
  1: "HUP",
  2: "INT",
  3: "QUIT",
  4: "ILL",
  6: "ABRT",
  7: "BUS",
  8: "FPE",
  9: "KILL",
  10: "USR1",
  11: "SEGV",
  12: "USR2",
  13: "PIPE",
  14: "ALRM",
  15: "TERM",
  24: "XCPU",
  31: "SYS",
};
export function signal_text(signal: number | string): string {
  if (typeof signal === "string") return signal.startsWith("SIG") ? signal : `SIG${signal}`;
  return kSignals[signal] ? `SIG${kSignals[signal]}` : `signal ${signal}`;
}
