// SPDX-License-Identifier: Apache-2.0
// The lines themselves: the scrolling element, the bar beside it, the badge of new lines, and what a
// screen reader is told of them.
import { effect } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { plural, ranks_text } from "../format";
import { model, server_now_us } from "../live";
import { href } from "../router";
import { plain_text } from "./ansi";
import type { Line } from "./lines";
import { is_single, type Logs, place_params } from "./place";
import { prefs } from "./prefs";
import { Rail } from "./rail";
import { ranks_of, type RowOptions } from "./row_view";
import type { LogSession } from "./session";
import { Viewport } from "./viewport";

const kAnnounce_ms = 5_000;

function row_options(session: LogSession): RowOptions {
  const { wrap, times } = prefs.value;
  const { logs } = session;
  const label = (line: Line) => {
    const own: Logs = { attempt: logs.attempt, ranks: [line.rank], streams: [line.stream] };
    const ranks = ranks_of(line);
    const both = logs.streams.length > 1;
    return {
      text: both && line.stream === "stderr" ? `${ranks} err` : ranks,
      title: `${line.folded ? "ranks" : "rank"} ${ranks}, ${line.stream}: this line in its own log`,
      href: href({ view: "logs", params: place_params(own, line) }),
    };
  };
  return {
    wrap,
    times,
    numbers: session.single,
    label: session.single ? null : label,
    marks: (line) => session.finder.matches(line),
  };
}

// When an attempt began, and its end or now.
function times_of(attempt: number): [number, number] {
  const row = model.peek().attempts.find((other) => other.attempt === attempt);
  return [row?.started_us ?? 0, row?.ended_us || server_now_us()];
}

// Where in the log the view is, 0 to 1, and how much of it is seen.
function place_of(session: LogSession, viewport: Viewport): { at: number; size: number } {
  const share = viewport.share();
  const first = session.first.peek();
  const last = session.last.peek();
  const { size } = session.facts.peek();
  const scaled = (begin: number, end: number, all: number) => {
    const seen = Math.max(0, end - begin);
    return { at: all > seen ? begin / (all - seen) : 0, size: all > 0 ? seen / all : 1 };
  };
  if (!session.whole && first && last) {
    if (session.single && size) return scaled(first.offset, last.offset + last.size, size);
    if (!session.single) {
      const [begin_us, end_us] = times_of(session.logs.attempt);
      return scaled(first.time_us - begin_us, last.time_us - begin_us, end_us - begin_us);
    }
  }
  return { at: share.size < 1 ? share.at / (1 - share.size) : 0, size: share.size };
}

export function label_of(logs: Logs): string {
  const whose = logs.ranks.length === 1 ? `rank ${logs.ranks[0]}` : `ranks ${ranks_text(logs.ranks)}`;
  return `${logs.streams.join(" and ")} of ${whose}, attempt ${logs.attempt}`;
}

function drag_to(session: LogSession, viewport: Viewport, share: number): void {
  session.pause();
  const { size } = session.facts.peek();
  if (session.whole) viewport.scroll_to_share(share * (1 - viewport.share().size));
  else if (share >= 0.999) void session.open({ kind: "end" });
  else if (session.single)
    void session.open({ kind: "offset", offset: Math.floor(share * (size ?? 0)) });
  else {
    const [begin_us, end_us] = times_of(session.logs.attempt);
    void session.open({ kind: "time", time_us: Math.floor(begin_us + share * (end_us - begin_us)) });
  }
}

// Makes the viewport and the bar, and keeps them up with the session.
function mount(session: LogSession, scroller: HTMLElement, bar: HTMLElement): () => void {
  let rail: Rail;
  const viewport: Viewport = new Viewport(scroller, row_options(session), {
    on_need: (way) => session.need(way),
    on_scroll: (at_end) => session.on_scroll(at_end),
    on_current: (line) => (session.current.value = line),
    on_more: (line) => void session.show_more(line),
    on_drawn: (first, last) => {
      session.first.value = first;
      session.last.value = last;
      const { at, size } = place_of(session, viewport);
      rail.show(at, size);
    },
  });
  rail = new Rail(bar, (share) => drag_to(session, viewport, share));
  session.attach(viewport);
  const stop = [
    effect(() => viewport.set_options(row_options(session))),
    effect(() => session.set_folding(prefs.value.fold)),
    effect(() => {
      const { hits, query } = session.finder.state.value;
      const size = session.facts.value.size ?? 0;
      const known = query !== null && hits > 0 && session.single && size > 0;
      rail.set_ticks(known ? session.finder.hits.map((line) => line.offset / size) : []);
    }),
  ];
  return () => {
    for (const end of stop) end();
    session.viewport = null;
    viewport.close();
    rail.close();
  };
}

// A screen reader hears of new lines now and then, never of each.
function Announcer({ session }: { session: LogSession }) {
  const [text, set_text] = useState("");
  useEffect(() => {
    let told = session.rows.peek().at(-1);
    const timer = setInterval(() => {
      const last = session.rows.peek().at(-1);
      if (!last || last === told || !session.following.peek()) return;
      told = last;
      set_text(`New lines. ${last.notice ? "" : plain_text(last.text).slice(0, 200)}`);
    }, kAnnounce_ms);
    return () => clearInterval(timer);
  }, [session]);
  return (
    <div class="hidden-text" role="status" aria-live="polite">
      {text}
    </div>
  );
}

function Empty({ session }: { session: LogSession }) {
  const { exists } = session.facts.value;
  if (session.rows.value.length > 0 || session.loading.value || exists === undefined) return null;
  return <p class="log-empty">{exists ? "No such lines." : "Nothing has been written here."}</p>;
}

export function LogPane({ session }: { session: LogSession }) {
  const scroller = useRef<HTMLDivElement>(null);
  const bar = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => mount(session, scroller.current!, bar.current!), [session]);
  const fresh = session.new_lines.value;
  const { total_lines } = session.facts.value;
  return (
    <div class="log-pane">
      <div
        ref={scroller}
        class="log-scroll"
        role="grid"
        tabIndex={0}
        aria-readonly="true"
        aria-label={`Log: ${label_of(session.logs)}`}
        aria-rowcount={is_single(session.logs) && total_lines !== undefined ? total_lines : -1}
      />
      <div ref={bar} class="log-rail" aria-hidden="true" />
      <Empty session={session} />
      {!session.following.value && fresh > 0 && (
        <button type="button" class="log-badge" onClick={() => session.to_end()}>
          ↓ {plural(fresh, "new line")}
        </button>
      )}
      <Announcer session={session} />
    </div>
  );
}
