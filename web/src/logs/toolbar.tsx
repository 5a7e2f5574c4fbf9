// SPDX-License-Identifier: Apache-2.0
// What is above the log: which logs, what of them, how they look.
import type { ComponentChildren, RefObject } from "preact";
import { useState } from "preact/hooks";
import { api_url, type StreamName } from "../api";
import { parse_ranks, ranks_text } from "../format";
import { model } from "../live";
import { href } from "../router";
import { kLevelNames, type Level } from "./level";
import { kMaxLogs, type Logs, place_params, type Query } from "./place";
import { prefs, toggle_pref } from "./prefs";
import type { LogSession } from "./session";

export interface Choices {
  logs: Logs;
  at_least: Level;
  query: Query;
  set_logs: (logs: Logs) => void;
  set_level: (level: Level) => void;
  set_query: (query: Query) => void;
  copy_link: () => void;
}

export function Toggle(props: {
  on: boolean;
  label: string;
  title: string;
  children: ComponentChildren;
  set: () => void;
}) {
  return (
    <button
      type="button"
      class="toggle"
      aria-pressed={props.on}
      aria-label={props.label}
      title={props.title}
      onClick={props.set}
    >
      {props.children}
    </button>
  );
}

export function AttemptChoice({ logs, set }: { logs: Logs; set: (attempt: number) => void }) {
  const known = model.value.attempts.map((row) => row.attempt);
  const all = known.includes(logs.attempt) ? known : [...known, logs.attempt].sort((a, b) => a - b);
  if (all.length < 2) return null;
  return (
    <label title="[ and ]">
      <span class="name">Attempt</span>{" "}
      <select
        aria-label="Attempt"
        value={logs.attempt}
        onChange={(event) => set(Number(event.currentTarget.value))}
      >
        {all.map((attempt) => (
          <option value={attempt}>{attempt}</option>
        ))}
      </select>
    </label>
  );
}

function RankChoice({ logs, set }: { logs: Logs; set: (ranks: number[]) => void }) {
  const [wrong, set_wrong] = useState(false);
  const take = (text: string) => {
    const ranks = /^\s*all\s*$/i.test(text)
      ? all_ranks(logs)
      : parse_ranks(text, kMaxLogs / logs.streams.length);
    set_wrong(ranks.length === 0);
    if (ranks.length > 0) set(ranks);
  };
  return (
    <span class="group">
      <label title="one, or several merged by time: 0-7,9 or all">
        <span class="name">Rank</span>{" "}
        <input
          type="text"
          class="ranks"
          aria-label="Ranks"
          size={7}
          value={ranks_text(logs.ranks)}
          aria-invalid={wrong}
          onChange={(event) => take(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key === "Enter" || event.key === "Escape") event.currentTarget.blur();
          }}
        />
      </label>
      <button
        type="button"
        class="quiet icon"
        aria-label="Previous rank"
        title="<"
        onClick={() => set(step_rank(logs, -1))}
      >
        ‹
      </button>
      <button
        type="button"
        class="quiet icon"
        aria-label="Next rank"
        title=">"
        onClick={() => set(step_rank(logs, 1))}
      >
        ›
      </button>
      <button
        type="button"
        class="quiet"
        title="a: all ranks, merged by time"
        onClick={() => set(all_ranks(logs))}
      >
        all
      </button>
    </span>
  );
}

export function world_size(logs: Logs): number {
  const { attempts, job } = model.peek();
  return attempts.find((row) => row.attempt === logs.attempt)?.world_size || job?.world_size || 1;
}

export function all_ranks(logs: Logs): number[] {
  const count = Math.min(world_size(logs), Math.floor(kMaxLogs / logs.streams.length));
  return Array.from({ length: count }, (_, rank) => rank);
}

// The rank next to the one shown, or to the first or last of several.
export function step_rank(logs: Logs, direction: 1 | -1): number[] {
  const size = world_size(logs);
  const edge = logs.ranks.length > 1 ? logs.ranks[0]! - direction : logs.ranks[0]!;
  return [(((edge + direction) % size) + size) % size];
}

const kStreams: [string, StreamName[], string][] = [
  ["stdout", ["stdout"], "1"],
  ["stderr", ["stderr"], "2"],
  ["both", ["stdout", "stderr"], "3"],
];

function StreamChoice({ logs, set }: { logs: Logs; set: (streams: StreamName[]) => void }) {
  return (
    <span class="segments" role="group" aria-label="Streams">
      {kStreams.map(([name, streams, key]) => (
        <Toggle
          on={logs.streams.join() === streams.join()}
          label={name}
          title={key}
          set={() => set(streams)}
        >
          {name}
        </Toggle>
      ))}
    </span>
  );
}

const kLevelTexts = ["all levels", "debug and up", "info and up", "warnings", "errors"];

function LevelChoice({ at_least, set }: { at_least: Level; set: (level: Level) => void }) {
  return (
    <label title="a guess from each line's words; l and L">
      <span class="name hidden-text">Level</span>
      <select
        value={at_least}
        class={at_least ? "active" : ""}
        onChange={(event) => set(Number(event.currentTarget.value) as Level)}
      >
        {kLevelNames.map((_, level) => (
          <option value={level}>{kLevelTexts[level]}</option>
        ))}
      </select>
    </label>
  );
}

function Looks({ session }: { session: LogSession }) {
  const { wrap, times, fold } = prefs.value;
  return (
    <span class="group">
      <Toggle on={wrap} label="Wrap long lines" title="w" set={() => toggle_pref("wrap")}>
        Wrap
      </Toggle>
      <Toggle on={times} label="Show times" title="t" set={() => toggle_pref("times")}>
        Times
      </Toggle>
      {!session.single && (
        <Toggle
          on={fold}
          label="Fold identical lines of several ranks"
          title="x"
          set={() => toggle_pref("fold")}
        >
          Fold
        </Toggle>
      )}
      <Toggle
        on={session.following.value}
        label="Follow the end"
        title="f"
        set={() => session.toggle_follow()}
      >
        Follow
      </Toggle>
    </span>
  );
}

export function Files({ logs, copy_link }: { logs: Logs; copy_link: () => void }) {
  const one = logs.ranks.length === 1 && logs.streams.length === 1;
  const raw = `/api/v1/logs/${logs.attempt}/${logs.ranks[0]}/${logs.streams[0]}`;
  const choice = {
    attempt: logs.attempt,
    ranks: ranks_text(logs.ranks),
    streams: logs.streams.join(","),
  };
  return (
    <span class="group">
      {one && (
        <a
          class="button quiet"
          href={raw}
          target="_blank"
          rel="noopener"
          title="the bytes as they are, in a tab of their own"
        >
          Raw
        </a>
      )}
      <a
        class="button quiet download"
        href={one ? `${raw}?download=1` : api_url("/api/v1/download", choice)}
        download
        title="d"
      >
        Download
      </a>
      <button type="button" class="quiet" title="Y: the address of this place" onClick={copy_link}>
        Copy link
      </button>
    </span>
  );
}

export function FindBar(props: {
  session: LogSession;
  query: Query;
  set: (query: Query) => void;
  input: RefObject<HTMLInputElement | null>;
}) {
  const { session, query, set, input } = props;
  const { state } = session.finder;
  const { hits, at, running, share, truncated, error, query: asked } = state.value;
  const count = `${hits.toLocaleString("en")}${truncated ? "+" : ""}`;
  const found = asked
    ? hits > 0 && at >= 0
      ? `${(at + 1).toLocaleString("en")} of ${count}`
      : running
        ? count
        : hits
          ? count
          : "nothing"
    : "";
  const step = (direction: 1 | -1) => session.finder.step(direction, session.current.peek());
  const everywhere = new URLSearchParams({
    q: query.text,
    ...(query.regex && { regex: "1" }),
    ...(query.match_case && { case: "1" }),
  });
  return (
    <form
      class="find"
      role="search"
      onSubmit={(event) => {
        event.preventDefault();
        const text = input.current?.value ?? "";
        if (asked && asked.text === text && hits > 0) step(1);
        else set({ ...query, text });
      }}
    >
      <input
        ref={input}
        type="search"
        aria-label="Find in these logs"
        placeholder="Find  /"
        value={query.text}
        onKeyDown={(event) => {
          if (event.key !== "Escape") return;
          if (running) session.finder.cancel();
          event.currentTarget.blur();
        }}
      />
      <Toggle
        on={query.regex}
        label="Regular expression"
        title="regular expression"
        set={() => set({ ...query, text: input.current?.value ?? "", regex: !query.regex })}
      >
        .*
      </Toggle>
      <Toggle
        on={query.match_case}
        label="Match case"
        title="match case"
        set={() => set({ ...query, text: input.current?.value ?? "", match_case: !query.match_case })}
      >
        Aa
      </Toggle>
      <span class="found" role="status">
        {error ? <strong>{error}</strong> : found}
        {running && ` ${Math.round(share * 100)} %`}
      </span>
      {hits > 0 && (
        <>
          <button
            type="button"
            class="quiet icon"
            aria-label="Previous hit"
            title="N"
            onClick={() => step(-1)}
          >
            ↑
          </button>
          <button
            type="button"
            class="quiet icon"
            aria-label="Next hit"
            title="n"
            onClick={() => step(1)}
          >
            ↓
          </button>
        </>
      )}
      {running && (
        <button type="button" class="quiet" onClick={() => session.finder.cancel()}>
          Stop
        </button>
      )}
      {asked && (
        <a class="button quiet" href={href({ view: "search", params: everywhere })}>
          in all logs
        </a>
      )}
    </form>
  );
}

export function Toolbar({
  session,
  choices,
  find,
}: {
  session: LogSession;
  choices: Choices;
  find: RefObject<HTMLInputElement | null>;
}) {
  const { logs, set_logs } = choices;
  return (
    <div class="log-tools" role="toolbar" aria-label="Log">
      <AttemptChoice logs={logs} set={(attempt) => set_logs({ ...logs, attempt })} />
      <RankChoice
        key={ranks_text(logs.ranks)}
        logs={logs}
        set={(ranks) => set_logs({ ...logs, ranks })}
      />
      <StreamChoice logs={logs} set={(streams) => set_logs({ ...logs, streams })} />
      <LevelChoice at_least={choices.at_least} set={choices.set_level} />
      <span class="group errors">
        <button type="button" class="quiet" title="E" onClick={() => void session.next_error(-1)}>
          ‹ error
        </button>
        <button type="button" class="quiet" title="e" onClick={() => void session.next_error(1)}>
          error ›
        </button>
      </span>
      <FindBar session={session} query={choices.query} set={choices.set_query} input={find} />
      <span class="grow" />
      <Looks session={session} />
    </div>
  );
}

export function permalink(logs: Logs, line: Parameters<typeof place_params>[1]): string {
  return new URL(href({ view: "logs", params: place_params(logs, line) }), location.href).href;
}
