// SPDX-License-Identifier: Apache-2.0
// The line below the log: where one is in it, how the connection is, what the last command said.
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { bytes_text, ranks_text, time_text } from "../format";
import { inert_text } from "../inert";
import type { LinkState } from "./follow";
import type { Spot } from "./place";
import type { LogSession } from "./session";

const kLinks: Record<LinkState, string> = {
  off: "not followed while this tab is hidden",
  connecting: "connecting",
  open: "live",
  silent: "the server is silent",
  lost: "the server is gone, trying again",
  refused: "cannot be followed",
  ended: "ended",
};

function Where({ session }: { session: LogSession }) {
  const line = session.current.value ?? session.last.value;
  const { size, total_lines } = session.facts.value;
  if (!line || line.notice) return null;
  const parts: string[] = [];
  if (session.single) {
    if (line.number >= 0) {
      const of = total_lines !== undefined ? ` of ${total_lines.toLocaleString("en")}` : "";
      parts.push(`line ${(line.number + 1).toLocaleString("en")}${of}`);
    }
    if (size) {
      parts.push(
        `${Math.min(100, Math.floor((100 * (line.offset + line.size + 1)) / size))} %`,
        bytes_text(size),
      );
    }
  } else parts.push(`rank ${line.rank}`);
  if (line.time_us) parts.push(time_text(line.time_us));
  return <span class="where">{parts.join(" · ")}</span>;
}

function LinkMark({ session }: { session: LogSession }) {
  const { state, why } = session.feed.link.value;
  const rate = session.feed.lines_per_s.value;
  let text = kLinks[state];
  if (state === "refused" && why) text = why;
  if (state === "open") text = session.following.value ? "following" : "paused";
  return (
    <span class={`link ${state}`} role="status">
      <span class="dot" aria-hidden="true" />
      {text}
      {state === "open" && rate >= 50 && <span class="muted"> {rate.toLocaleString("en")} lines/s</span>}
    </span>
  );
}

// "4711" a line, "50%", "@123" an offset, "12:34:56" a time of the day on which the log was written.
export function parse_goto(text: string, size: number | undefined, near_us: number): Spot | null {
  const word = text.trim().replaceAll(",", "");
  if (/^\d{1,15}$/.test(word)) return { kind: "line", line: Math.max(0, Number(word) - 1) };
  const offset = /^@(\d{1,15})$/.exec(word);
  if (offset) return { kind: "offset", offset: Number(offset[1]) };
  const share = /^(\d{1,3}(?:\.\d+)?)\s*%$/.exec(word);
  if (share && size)
    return { kind: "offset", offset: Math.floor((Math.min(100, Number(share[1])) / 100) * size) };
  const time = /^(\d{1,2}):(\d{2})(?::(\d{2}(?:\.\d+)?))?$/.exec(word);
  if (time) {
    const day = new Date(near_us ? near_us / 1000 : Date.now());
    day.setHours(Number(time[1]), Number(time[2]), 0, 0);
    return { kind: "time", time_us: (day.getTime() + Number(time[3] ?? 0) * 1000) * 1000 };
  }
  const full = Date.parse(word);
  return /^\d{4}-\d\d-\d\d/.test(word) && !Number.isNaN(full)
    ? { kind: "time", time_us: full * 1000 }
    : null;
}

export function GoTo({ session, on_close }: { session: LogSession; on_close: () => void }) {
  const input = useRef<HTMLInputElement>(null);
  // Before the next key comes.
  useLayoutEffect(() => input.current?.focus(), []);
  const go = (event: Event) => {
    event.preventDefault();
    const near = session.last.peek()?.time_us ?? 0;
    const spot = parse_goto(input.current?.value ?? "", session.facts.peek().size, near);
    if (!spot || (!session.single && spot.kind !== "time")) {
      session.notice.value = session.single
        ? "a line number, 50%, @offset or 12:34:56 was expected"
        : "several logs have only times in common: 12:34:56";
    } else void session.open(spot);
    on_close();
  };
  return (
    <form class="goto" onSubmit={go}>
      <label>
        Go to{" "}
        <input
          ref={input}
          type="text"
          size={14}
          placeholder={session.single ? "line, 50%, 12:34:56" : "12:34:56"}
          onKeyDown={(event) => event.key === "Escape" && on_close()}
          onBlur={on_close}
        />
      </label>
    </form>
  );
}

interface Props {
  session: LogSession;
  going: boolean; // a place to go to is being asked for
  on_close: () => void;
  children: ComponentChildren;
}

export function StatusBar({ session, going, on_close, children }: Props) {
  const { untimed, unreachable } = session.facts.value;
  return (
    <footer class="log-status">
      {going ? <GoTo session={session} on_close={on_close} /> : <Where session={session} />}
      {untimed && untimed.length > 0 && (
        <span>
          No times are known of {untimed.length === 1 ? "rank" : "ranks"} {ranks_text(untimed)}: see
          their logs one by one.
        </span>
      )}
      {unreachable && unreachable.length > 0 && (
        <span class="foreign">
          Without the logs of {inert_text(unreachable.join(", "))}, which cannot be reached now.
        </span>
      )}
      <span class="says" role="status">
        {session.error.value ? (
          <strong>{session.error.value}</strong>
        ) : (
          session.loading.value || session.notice.value
        )}
      </span>
      {children}
      <LinkMark session={session} />
    </footer>
  );
}
