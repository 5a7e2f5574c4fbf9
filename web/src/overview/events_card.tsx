// SPDX-License-Identifier: Apache-2.0
// The timeline, and below it what happened, the newest first, by kind.
import { useEffect, useMemo, useState } from "preact/hooks";
import { read_json_lines, type Job, type JobEvent } from "../api";
import { date_time_text, time_text } from "../format";
import { parse_inert } from "../inert";
import { model, server_now_us } from "../live";
import { kMaxRankEvents, merge_events } from "../model";
import { now_ms } from "../now";
import { href, logs_route } from "../router";
import {
  event_time_us,
  fold_events,
  group_of,
  kGroups,
  since_start,
  type EventRow,
  type Group,
} from "./event_text";
import { Timeline, type Span } from "./timeline";

const kRowsAtFirst = 30;
const kMoreRows = 200;

function EventLine({ row }: { row: EventRow }) {
  const event = row.first;
  const time_us = event_time_us(event);
  const group = group_of(event);
  const has_log =
    row.count === 1 &&
    typeof event.rank === "number" &&
    event.rank >= 0 &&
    typeof event.attempt === "number";
  return (
    <li class={`event ${group} ${event.event}`}>
      <time class="muted" title={`${date_time_text(time_us)} · event ${event.seq}`}>
        {time_text(time_us)}
      </time>
      <span class="muted since">{since_start(event)}</span>
      <span class="foreign what">{row.text}</span>
      {has_log && (
        <a
          href={href(logs_route({ attempt: event.attempt ?? 0, ranks: event.rank ?? 0 }))}
          aria-label={`logs of rank ${event.rank}, attempt ${event.attempt}`}
        >
          logs
        </a>
      )}
    </li>
  );
}

// The stream begins with the newest events; those before them are fetched once.
function useAllEvents(job: Job): void {
  useEffect(() => {
    const first = model.peek().events[0]?.seq ?? 0;
    if (first === 0) return;
    const stop = new AbortController();
    const rows: JobEvent[] = [];
    read_json_lines<JobEvent>(
      "/api/v1/events",
      (row) => {
        if (row.seq < first) rows.push(row);
      },
      stop.signal,
      parse_inert,
    )
      .then(() => {
        const now = model.peek();
        if (now.job?.run_id === job.run_id)
          model.value = { ...now, events: merge_events(now.events, rows) };
      })
      .catch(() => {}); // what the stream brought is shown
    return () => stop.abort();
  }, [job.run_id]);
}

function Filters({
  counts,
  off,
  set_off,
}: {
  counts: Record<Group, number>;
  off: ReadonlySet<Group>;
  set_off: (off: ReadonlySet<Group>) => void;
}) {
  const toggle = (group: Group) => {
    const next = new Set(off);
    if (!next.delete(group)) next.add(group);
    set_off(next);
  };
  return (
    <div class="filters" role="group" aria-label="Kinds of events">
      {kGroups
        .filter((group) => counts[group] > 0)
        .map((group) => (
          <button
            type="button"
            class={`chip ${group}`}
            aria-pressed={!off.has(group)}
            onClick={() => toggle(group)}
          >
            {group} <span class="muted">{counts[group].toLocaleString("en")}</span>
          </button>
        ))}
    </div>
  );
}

export function EventsCard({ job }: { job: Job }) {
  const { events, attempts } = model.value;
  useAllEvents(job);
  const [off, set_off] = useState<ReadonlySet<Group>>(new Set());
  const [zoom, set_zoom] = useState<Span | null>(null);
  const [shown, set_shown] = useState(kRowsAtFirst);
  const running = job.live && !job.ended_us;
  if (running) void now_ms.value;
  const last_us =
    job.ended_us ??
    (running ? server_now_us() : event_time_us(events.at(-1) ?? ({ time: "" } as JobEvent)));
  const whole: Span = [job.started_us, Math.max(last_us, job.started_us + 1e6)];
  const counts = useMemo(() => {
    const sums = { failures: 0, attempts: 0, nodes: 0, signals: 0, trouble: 0, workers: 0 };
    for (const event of events) ++sums[group_of(event)];
    return sums;
  }, [events]);
  const rows = useMemo(() => {
    const within = (event: JobEvent) =>
      !zoom || (event_time_us(event) >= zoom[0] && event_time_us(event) <= zoom[1]);
    return fold_events(
      events.filter((event) => !off.has(group_of(event)) && within(event)),
    ).reverse();
  }, [events, off, zoom]);
  return (
    <section class="card events-card" aria-labelledby="events-title">
      <h2 id="events-title">Timeline</h2>
      <Timeline
        job={job}
        attempts={attempts}
        events={events}
        whole={whole}
        zoom={zoom}
        set_zoom={set_zoom}
      />
      <Filters counts={counts} off={off} set_off={set_off} />
      <ol class="events" aria-label="Events, the newest first">
        {rows.slice(0, shown).map((row) => (
          <EventLine key={row.first.seq} row={row} />
        ))}
      </ol>
      {counts.workers >= kMaxRankEvents && (
        <p class="muted">
          Of the events of single ranks these are the last {kMaxRankEvents.toLocaleString("en")};
          the run's events.jsonl has all.
        </p>
      )}
      {rows.length === 0 && (
        <p class="muted">Nothing of the chosen kinds{zoom ? " in this part" : ""}.</p>
      )}
      {rows.length > shown && (
        <p>
          <button type="button" onClick={() => set_shown(shown + kMoreRows)}>
            Earlier events
          </button>{" "}
          <span class="muted">{rows.length - shown} more</span>
        </p>
      )}
    </section>
  );
}
