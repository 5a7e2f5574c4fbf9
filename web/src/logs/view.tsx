// SPDX-License-Identifier: Apache-2.0
// The log view: its address is its state, its keys are all that it can do.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { announce, copy_text } from "../clipboard";
import { plural } from "../format";
import { useKeys, type KeyBinding } from "../keyboard";
import { model } from "../live";
import { type Navigation, navigate } from "../router";
import { kLevelNames, Level } from "./level";
import type { Line } from "./lines";
import { LogPane, label_of } from "./log_pane";
import {
  type Logs,
  parse_level,
  parse_logs,
  parse_query,
  parse_spot,
  place_params,
  type Query,
  same_logs,
} from "./place";
import { prefs, toggle_pref } from "./prefs";
import { copied_text } from "./row_selection";
import { LogSession } from "./session";
import { StatusBar } from "./status_bar";
import { all_ranks, type Choices, Files, permalink, step_rank, Toolbar } from "./toolbar";

export interface ViewProps {
  params: URLSearchParams; // of the address, as in router.ts
  setParams: (next: URLSearchParams, how?: Navigation) => void;
}

const kAddressDelay_ms = 300;

// Without a choice: what failed, otherwise the first rank.
function usual_logs(): Logs {
  const { job, attempts } = model.peek();
  const attempt = job?.attempt ?? 0;
  const rank = attempts.find((row) => row.attempt === attempt)?.failure?.rank ?? 0;
  return { attempt, ranks: [Math.max(0, rank)], streams: ["stdout", "stderr"] };
}

// The address of a view: the logs, the place, and what is kept from one to the other.
function make_params(logs: Logs, line: Line | null, at_least: Level, query: Query): URLSearchParams {
  const params = place_params(logs, line);
  if (at_least !== Level.kNone) params.set("level", kLevelNames[at_least]);
  if (query.text) params.set("q", query.text);
  if (query.text && query.regex) params.set("regex", "1");
  if (query.text && query.match_case) params.set("case", "1");
  return params;
}

// What is asked for is on its way before the page is drawn.
function useSession(logs: Logs, params: URLSearchParams): LogSession {
  const session = useMemo(() => {
    const made = new LogSession(logs, prefs.peek().fold, parse_level(params));
    void made.open(parse_spot(params));
    return made;
  }, [JSON.stringify(logs)]);
  useEffect(() => {
    const query = parse_query(params);
    if (query.text) session.find(query);
    return () => session.close();
  }, [session]);
  return session;
}

function useBindings(session: LogSession, choices: Choices, find: () => void, go: () => void): void {
  const { logs, set_logs, at_least, set_level, query, set_query } = choices;
  const viewport = () => session.viewport;
  const attempts = (step: number) => {
    const attempt = logs.attempt + step;
    if (model.peek().attempts.some((row) => row.attempt === attempt)) set_logs({ ...logs, attempt });
  };
  const level = (step: number) =>
    set_level(((at_least + step + kLevelNames.length) % kLevelNames.length) as Level);
  const copy = () => {
    const rows = viewport()?.marked() ?? [];
    if (rows.length > 0) void copy_text(rows.map(copied_text).join("\n"), plural(rows.length, "line"));
  };
  const escape = () => {
    session.notice.value = "";
    session.error.value = "";
    if (session.finder.state.peek().running) session.finder.cancel();
    else if (viewport()?.mark) viewport()?.set_mark(null);
    else if (query.text) set_query({ ...query, text: "" });
  };
  const bindings: KeyBinding[] = [
    { keys: ["j", "ArrowDown"], label: "next line", run: () => move(session, 1) },
    { keys: ["k", "ArrowUp"], label: "line before", run: () => move(session, -1) },
    { keys: ["PageDown", "Space"], label: "a screen on", run: () => viewport()?.page(1) },
    { keys: ["PageUp", "Shift+Space", "b"], label: "a screen back", run: () => viewport()?.page(-1) },
    { keys: ["g g", "Home"], label: "beginning", run: () => session.to_begin() },
    { keys: ["G", "End"], label: "end, and follow", run: () => session.to_end() },
    { keys: "f", label: "follow or pause", run: () => session.toggle_follow() },
    { keys: ":", label: "go to a line, share or time", run: go },
    { keys: "/", label: "find", run: find },
    { keys: "n", label: "next hit", run: () => session.finder.step(1, session.current.peek()) },
    { keys: "N", label: "hit before", run: () => session.finder.step(-1, session.current.peek()) },
    { keys: "e", label: "next error", run: () => void session.next_error(1) },
    { keys: "E", label: "error before", run: () => void session.next_error(-1) },
    { keys: "l", label: "only worse levels", run: () => level(1) },
    { keys: "L", label: "more levels", run: () => level(-1) },
    {
      keys: ["ArrowLeft", "ArrowRight"],
      label: "long lines sideways",
      run: (event) => viewport()?.scroll_by_columns(event.key === "ArrowLeft" ? -20 : 20),
    },
    { keys: "Enter", label: "more of a long line", run: (event) => enter(session, event) },
    {
      keys: "o",
      label: "this line in its own log, or among all ranks",
      run: () => other_view(session, logs),
    },
    { keys: "<", label: "rank before", run: () => set_logs({ ...logs, ranks: step_rank(logs, -1) }) },
    { keys: ">", label: "next rank", run: () => set_logs({ ...logs, ranks: step_rank(logs, 1) }) },
    { keys: "a", label: "all ranks", run: () => set_logs({ ...logs, ranks: all_ranks(logs) }) },
    { keys: "[", label: "attempt before", run: () => attempts(-1) },
    { keys: "]", label: "next attempt", run: () => attempts(1) },
    { keys: "1", label: "stdout", run: () => set_logs({ ...logs, streams: ["stdout"] }) },
    { keys: "2", label: "stderr", run: () => set_logs({ ...logs, streams: ["stderr"] }) },
    {
      keys: "3",
      label: "both streams",
      run: () => set_logs({ ...logs, streams: ["stdout", "stderr"] }),
    },
    { keys: "w", label: "wrap long lines", run: () => toggle_pref("wrap") },
    { keys: "t", label: "times", run: () => toggle_pref("times") },
    { keys: "x", label: "fold identical lines of ranks", run: () => toggle_pref("fold") },
    {
      keys: "v",
      label: "mark lines from here",
      run: () => viewport()?.set_mark(session.current.peek()),
    },
    { keys: "y", label: "copy the line, or those marked", run: copy },
    { keys: "Y", label: "copy the address of the line", run: choices.copy_link },
    {
      keys: "d",
      label: "download",
      run: () => document.querySelector<HTMLAnchorElement>(".log-status .download")?.click(),
    },
    { keys: "Escape", label: "end the search, the marks", run: escape },
  ];
  useKeys("Log", bindings);
}

function move(session: LogSession, step: number): void {
  session.pause();
  session.viewport?.move(step);
}

function enter(session: LogSession, event: KeyboardEvent): void {
  const target = event.target;
  if (target instanceof HTMLElement && target.closest("button, a, select")) {
    target.click();
    return;
  }
  const line = session.current.peek();
  if (line) void session.show_more(line);
}

// From several logs to the line's own; from one to all ranks around the line's time.
function other_view(session: LogSession, logs: Logs): void {
  const line = session.current.peek();
  if (!line) return;
  const to: Logs = session.single
    ? { ...logs, ranks: all_ranks(logs) }
    : { ...logs, ranks: [line.rank], streams: [line.stream] };
  navigate({ view: "logs", params: place_params(to, line) });
}

// The next attempt has begun while this one was being followed.
function NewAttempt({ logs, go }: { logs: Logs; go: (attempt: number) => void }) {
  const latest = model.value.attempts.at(-1)?.attempt ?? logs.attempt;
  const [seen] = useState(latest);
  if (latest <= logs.attempt || latest <= seen) return null;
  return (
    <p class="log-banner" role="status">
      Attempt {latest} has begun.{" "}
      <button type="button" onClick={() => go(latest)}>
        Show its log
      </button>
    </p>
  );
}

// Streams that a worker opened itself have no times by which they could be merged: one of them is
// shown instead of nothing.
function useTimeless(session: LogSession, { logs, set_logs }: Choices): void {
  const { untimed } = session.facts.value;
  const nothing = session.rows.value.length === 0;
  useEffect(() => {
    const rank = untimed?.[0];
    if (session.single || !nothing || rank === undefined) return;
    const { stdout, stderr } = model.peek().ranks.get(rank) ?? { stdout: true, stderr: true };
    const stream = !stdout && stderr ? "stderr" : (logs.streams[0] ?? "stdout");
    announce("no times are known of these lines, so their logs are shown one by one");
    set_logs({ ...logs, ranks: [rank], streams: [stream] });
  }, [session, untimed, nothing]);
}

export function LogsView({ params, setParams }: ViewProps) {
  // Which logs are the usual ones is known when the job is.
  if (!params.has("attempt") && !model.value.job) return <div class="logs" />;
  return <Logs params={params} setParams={setParams} />;
}

function Logs({ params, setParams }: ViewProps) {
  const logs = parse_logs(params, usual_logs());
  const session = useSession(logs, params);
  const [going, set_going] = useState(false);
  const find = useRef<HTMLInputElement>(null);
  const at_least = parse_level(params);
  const query = parse_query(params);
  const written = useRef(params.toString());

  const set = (next: URLSearchParams, how?: Navigation) => {
    written.current = next.toString();
    setParams(next, how);
  };
  const choices: Choices = {
    logs,
    at_least,
    query,
    set_logs: (next) => {
      if (!same_logs(next, logs)) set(make_params(next, null, at_least, query));
    },
    set_level: (level) => {
      set(make_params(logs, session.current.peek(), level, query), { replace: true });
      session.set_level(level);
    },
    set_query: (next) => {
      set(make_params(logs, session.current.peek(), at_least, next), { replace: true });
      session.find(next);
    },
    copy_link: () => {
      const line = session.current.peek() ?? (session.following.peek() ? null : session.first.peek());
      void copy_text(permalink(logs, line), "address");
    },
  };

  // The address follows the current line; an address that somebody else wrote moves the view.
  const current = session.current.value;
  const following = session.following.value;
  useEffect(() => {
    const timer = setTimeout(() => {
      if (current || following) set(make_params(logs, current, at_least, query), { replace: true });
    }, kAddressDelay_ms);
    return () => clearTimeout(timer);
  }, [current, following]);
  useEffect(() => {
    if (params.toString() === written.current) return;
    written.current = params.toString();
    void session.open(parse_spot(params));
  }, [params.toString(), session]);

  useTimeless(session, choices);
  useBindings(
    session,
    choices,
    () => find.current?.select(),
    () => set_going(true),
  );
  return (
    <main id="main" class="logs" tabIndex={-1}>
      <h1 class="hidden-text">Log: {label_of(logs)}</h1>
      <Toolbar session={session} choices={choices} find={find} />
      <NewAttempt
        key={logs.attempt}
        logs={logs}
        go={(attempt) => choices.set_logs({ ...logs, attempt })}
      />
      <LogPane key={JSON.stringify(logs)} session={session} />
      <StatusBar session={session} going={going} on_close={() => set_going(false)}>
        <Files logs={logs} copy_link={choices.copy_link} />
      </StatusBar>
    </main>
  );
}
