// SPDX-License-Identifier: Apache-2.0
// Searching all ranks and attempts: what is found is listed as it comes, with the lines around it.
import { signal, type Signal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { bytes_text, plural } from "../format";
import { inert_text } from "../inert";
import { useKeys } from "../keyboard";
import { model } from "../live";
import { href, navigate } from "../router";
import { share_of } from "./finder";
import type { Line } from "./lines";
import { type Logs, parse_query, place_params, type Query } from "./place";
import { prefs } from "./prefs";
import type { RowOptions } from "./row_view";
import { type Found, run_search, type SearchScope } from "./search";
import { Toggle } from "./toolbar";
import type { ViewProps } from "./view";
import { Viewport } from "./viewport";
import { parse_ranks } from "../format";

const kLimits = [1_000, 10_000];
const kContext = 2;

interface Outcome {
  hits: number;
  running: boolean;
  share: number;
  bytes: number;
  truncated: boolean;
  error: string;
  without: string; // what could not be searched
}
const kNothing: Outcome = {
  hits: 0,
  running: false,
  share: 0,
  bytes: 0,
  truncated: false,
  error: "",
  without: "",
};

function log_of(line: Line): Logs {
  return { attempt: line.attempt, ranks: [line.rank], streams: [line.stream] };
}

// One search, from its beginning to its end or to the next one.
class Listing {
  readonly outcome: Signal<Outcome> = signal(kNothing);
  viewport: Viewport | null = null;
  private rows: Line[] = [];
  private work: AbortController | null = null;
  private scheduled = false;

  start(query: Query, scope: SearchScope): void {
    this.cancel();
    this.rows = [];
    this.outcome.value = { ...kNothing, running: query.text !== "" };
    this.draw();
    if (query.text === "") return;
    const work = new AbortController();
    this.work = work;
    run_search(
      query,
      scope,
      (found) => this.add(found),
      (progress) => this.change({ share: share_of(progress), bytes: progress.bytes }),
      work.signal,
    ).then(
      ({ truncated, bytes, unreachable = [], troubles = [] }) =>
        this.change({
          running: false,
          truncated,
          bytes,
          share: 1,
          without: [...unreachable, ...troubles].join(", "),
        }),
      (error: unknown) => {
        if (work.signal.aborted) return;
        this.change({ running: false, error: error instanceof Error ? error.message : String(error) });
      },
    );
  }

  cancel(): void {
    this.work?.abort();
    this.work = null;
    if (this.outcome.peek().running) this.change({ running: false, truncated: true });
  }

  draw(): void {
    this.viewport?.show(this.rows, { kind: "keep" });
  }

  // Lines around a hit that the hit before has shown already are not shown twice.
  private add(found: Found): void {
    const last = this.rows.at(-1);
    const same =
      last &&
      last.attempt === found.line.attempt &&
      last.rank === found.line.rank &&
      last.stream === found.line.stream;
    const group = [...found.before, found.line, ...found.after];
    if (same) {
      while (group[0] && group[0].context && group[0].offset <= last.offset) group.shift();
      // The hit itself may have been shown as a line behind the one before.
      while (this.rows.at(-1)?.context && this.rows.at(-1)!.offset >= found.line.offset) this.rows.pop();
    }
    const first = group[0];
    const before = this.rows.at(-1);
    if (first && before) first.separated = !same || before.offset + before.size + 1 < first.offset;
    this.rows.push(...group);
    this.change({ hits: this.outcome.peek().hits + 1 });
    if (this.scheduled) return;
    this.scheduled = true;
    setTimeout(() => {
      this.scheduled = false;
      this.draw();
    }, 50);
  }

  private change(change: Partial<Outcome>): void {
    this.outcome.value = { ...this.outcome.peek(), ...change };
  }
}

function options(): RowOptions {
  const label = (line: Line) => ({
    text: `${model.peek().attempts.length > 1 ? `${line.attempt}/` : ""}${line.rank} ${line.stream === "stderr" ? "err" : "out"}`,
    title: `rank ${line.rank}, ${line.stream}, attempt ${line.attempt}: this line in its log`,
    href: href({ view: "logs", params: place_params(log_of(line), line) }),
  });
  return { wrap: prefs.value.wrap, times: prefs.value.times, numbers: true, label, marks: null };
}

function Summary({ outcome }: { outcome: Outcome }) {
  const { hits, running, share, bytes, truncated, error, without } = outcome;
  if (error) return <strong>{error}</strong>;
  if (running)
    return (
      <>
        {plural(hits, "hit")}, {Math.round(share * 100)} % looked at
      </>
    );
  if (bytes === 0 && hits === 0 && !without) return null;
  return (
    <>
      {plural(hits, "hit")}
      {truncated ? ", and there may be more" : ` in ${bytes_text(bytes)}`}
      {without && <span class="foreign">; not searched: {inert_text(without)}</span>}
    </>
  );
}

function scope_of(params: URLSearchParams, limit: number): SearchScope {
  const attempt = params.get("attempt");
  const ranks = parse_ranks(params.get("ranks") ?? "");
  const streams = params.get("streams");
  return {
    limit,
    context: Number(params.get("context") ?? kContext),
    ...(attempt !== null && /^\d+$/.test(attempt) && { attempt: Number(attempt) }),
    ...(ranks.length > 0 && { ranks }),
    ...(streams && { streams: streams.split(",") }),
  };
}

export function SearchView({ params, setParams }: ViewProps) {
  const listing = useMemo(() => new Listing(), []);
  const scroller = useRef<HTMLDivElement>(null);
  const form = useRef<HTMLFormElement>(null);
  const input = useRef<HTMLInputElement>(null);
  const query = parse_query(params);
  const outcome = listing.outcome.value;
  const address = params.toString();
  const limit = Number(params.get("limit")) === kLimits[1] ? kLimits[1]! : kLimits[0]!;

  useEffect(() => {
    const viewport = new Viewport(scroller.current!, options(), {
      on_need: () => {},
      on_scroll: () => {},
      on_current: () => {},
      on_more: (line) => {
        line.shown = line.text.length;
        viewport.redraw(line);
      },
      on_drawn: () => {},
    });
    listing.viewport = viewport;
    listing.draw();
    return () => {
      listing.viewport = null;
      viewport.close();
      listing.cancel();
    };
  }, []);
  useEffect(() => listing.viewport?.set_options(options()), [prefs.value]);
  useEffect(() => {
    listing.start(query, scope_of(params, limit));
    if (!query.text) input.current?.focus();
  }, [address]);

  const submit = (change: Record<string, string> = {}) => {
    const fields = new FormData(form.current!);
    const next = new URLSearchParams();
    for (const [name, value] of [
      ...fields.entries(),
      ...Object.entries({ regex: query.regex ? "1" : "", case: query.match_case ? "1" : "", ...change }),
    ]) {
      if (typeof value === "string" && value !== "") next.set(name, value);
      else next.delete(name);
    }
    if (next.toString() === address) listing.start(query, scope_of(params, limit));
    else setParams(next);
  };
  const open = () => {
    const line = listing.viewport?.current;
    if (line) navigate({ view: "logs", params: place_params(log_of(line), line) });
  };
  useKeys("Search", [
    { keys: "/", label: "what to look for", run: () => input.current?.select() },
    { keys: ["j", "ArrowDown", "n"], label: "next line", run: () => listing.viewport?.move(1) },
    { keys: ["k", "ArrowUp", "N"], label: "line before", run: () => listing.viewport?.move(-1) },
    { keys: ["PageDown", "Space"], label: "a screen on", run: () => listing.viewport?.page(1) },
    { keys: ["PageUp", "Shift+Space"], label: "a screen back", run: () => listing.viewport?.page(-1) },
    { keys: "o", label: "the line in its log", run: open },
    { keys: "Escape", label: "end the search", run: () => listing.cancel() },
  ]);

  return (
    <main id="main" class="search" tabIndex={-1}>
      <h1 class="hidden-text">Search all logs</h1>
      <form
        ref={form}
        class="log-tools"
        role="search"
        onSubmit={(event) => {
          event.preventDefault();
          submit();
        }}
      >
        <input
          ref={input}
          type="search"
          name="q"
          class="wide"
          aria-label="Search all logs"
          placeholder="Search all logs"
          value={query.text}
        />
        <Toggle
          on={query.regex}
          label="Regular expression"
          title="regular expression (RE2)"
          set={() => submit({ regex: query.regex ? "" : "1" })}
        >
          .*
        </Toggle>
        <Toggle
          on={query.match_case}
          label="Match case"
          title="match case"
          set={() => submit({ case: query.match_case ? "" : "1" })}
        >
          Aa
        </Toggle>
        <label>
          <span class="name">Attempt</span>{" "}
          <select
            name="attempt"
            aria-label="Attempt"
            value={params.get("attempt") ?? ""}
            onChange={() => submit()}
          >
            <option value="">all</option>
            {model.value.attempts.map((row) => (
              <option value={row.attempt}>{row.attempt}</option>
            ))}
          </select>
        </label>
        <label>
          <span class="name">Ranks</span>{" "}
          <input
            type="text"
            name="ranks"
            aria-label="Ranks"
            size={7}
            placeholder="all"
            value={params.get("ranks") ?? ""}
            onChange={() => submit()}
          />
        </label>
        <label>
          <span class="name">Streams</span>{" "}
          <select
            name="streams"
            aria-label="Streams"
            value={params.get("streams") ?? ""}
            onChange={() => submit()}
          >
            <option value="">both</option>
            <option value="stdout">stdout</option>
            <option value="stderr">stderr</option>
          </select>
        </label>
        <label>
          <span class="name">Lines around</span>{" "}
          <select
            name="context"
            aria-label="Lines around"
            value={params.get("context") ?? String(kContext)}
            onChange={() => submit()}
          >
            {[0, 2, 5, 10].map((lines) => (
              <option value={lines}>{lines}</option>
            ))}
          </select>
        </label>
        {outcome.running ? (
          <button type="button" onClick={() => listing.cancel()}>
            Stop
          </button>
        ) : (
          <button type="submit">Search</button>
        )}
        <span class="found" role="status">
          <Summary outcome={outcome} />
        </span>
        {outcome.truncated && limit === kLimits[0] && (
          <button type="button" class="quiet" onClick={() => submit({ limit: String(kLimits[1]) })}>
            show up to {kLimits[1]!.toLocaleString("en")}
          </button>
        )}
      </form>
      <div class="log-pane">
        <div
          ref={scroller}
          class="log-scroll plain"
          role="grid"
          tabIndex={0}
          aria-readonly="true"
          aria-label="What was found"
          aria-rowcount={-1}
        />
        {!query.text && (
          <p class="log-empty">
            Looks through the logs of all ranks and attempts. Regular expressions are RE2's.
          </p>
        )}
        {query.text && !outcome.running && !outcome.error && outcome.hits === 0 && (
          <p class="log-empty">Nothing was found.</p>
        )}
      </div>
    </main>
  );
}
