// SPDX-License-Identifier: Apache-2.0
// The run from left to right: its attempts as bars, what befell them as marks. A part of it can be
// drawn larger by dragging over it; the list of events then shows that part.
import { useRef, useState } from "preact/hooks";
import type { Attempt, Job, JobEvent } from "../api";
import { clock_text, span_text } from "../format";
import { now_us } from "../now";
import { kAttemptTones, kToneMarks } from "../states";
import { event_text, event_time_us, group_of, type Group } from "./event_text";

export type Span = readonly [from_us: number, to_us: number];

const kLeastSpanUs = 1_000_000;
const kMaxMarks = 300;

interface Props {
  job: Job;
  attempts: readonly Attempt[];
  events: readonly JobEvent[];
  whole: Span;
  zoom: Span | null;
  set_zoom: (zoom: Span | null) => void;
}

export function clamp_span([from, to]: Span, [first, last]: Span): Span {
  const length = Math.min(last - first, Math.max(kLeastSpanUs, to - from));
  const start = Math.min(last - length, Math.max(first, from));
  return [start, start + length];
}

// Times on the axis: at most so many, at round distances.
export function ticks(length_s: number, most: number): number[] {
  const steps = [0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 14_400, 28_800, 43_200, 86_400];
  const step = steps.find((candidate) => length_s / candidate <= most) ?? Math.ceil(length_s / most / 86_400) * 86_400;
  return Array.from({ length: Math.floor(length_s / step) + 1 }, (_, i) => i * step);
}

function Bar({ attempt, from, scale, end }: { attempt: Attempt; from: number; scale: number; end: number }) {
  const tone = kAttemptTones[attempt.state];
  const left = Math.max(0, (attempt.started_us - from) * scale);
  const right = Math.min(100, ((attempt.ended_us ?? end) - from) * scale);
  if (right < 0 || left > 100) return null;
  const took = span_text(((attempt.ended_us ?? end) - attempt.started_us) / 1e6);
  const title = `attempt ${attempt.attempt}: ${attempt.state}, ${took}`;
  return (
    <div class={`attempt-bar ${tone}`} title={title} style={{ left: `${left}%`, width: `${Math.max(0.3, right - left)}%` }}>
      <span><span aria-hidden="true">{kToneMarks[tone]}</span> {title}</span>
    </div>
  );
}

const kMarked = new Set<Group>(["failures", "nodes", "signals", "trouble"]);

function Marks({ events, from, scale }: { events: readonly JobEvent[]; from: number; scale: number }) {
  const marks = events.filter((event) => kMarked.has(group_of(event)) && event.event !== "victims_found" && event.event !== "nodes_awaited");
  return (
    <div class="event-marks">
      {marks.slice(-kMaxMarks).map((event) => {
        const left = (event_time_us(event) - from) * scale;
        return left >= 0 && left <= 100 && (
          <i key={event.seq} class={`${group_of(event)} ${event.event}`} title={event_text(event)} style={{ left: `${left}%` }} />
        );
      })}
    </div>
  );
}

export function Timeline({ job, attempts, events, whole, zoom, set_zoom }: Props) {
  const element = useRef<HTMLDivElement>(null);
  const [drag, set_drag] = useState<{ from: number; to: number } | null>(null);
  const [from, to] = zoom ?? whole;
  const scale = 100 / Math.max(1, to - from);
  const end = job.ended_us ?? (job.live ? now_us() : whole[1]);
  const at = (event: PointerEvent): number => {
    const box = element.current?.getBoundingClientRect();
    return box ? Math.min(1, Math.max(0, (event.clientX - box.left) / box.width)) : 0;
  };
  const resize = (factor: number) => {
    const half = ((to - from) * factor) / 2;
    const middle = (from + to) / 2;
    const next = clamp_span([middle - half, middle + half], whole);
    set_zoom(next[1] - next[0] >= whole[1] - whole[0] ? null : next);
  };
  const length_s = (to - from) / 1e6;
  const start_s = (from - whole[0]) / 1e6;
  return (
    <div class="timeline">
      <div class="timeline-tools">
        <span class="muted">{zoom ? `${clock_text(start_s)} to ${clock_text(start_s + length_s)}` : "drag over a part to see it larger"}</span>
        <button type="button" class="quiet icon" aria-label="Larger" onClick={() => resize(0.5)}>+</button>
        <button type="button" class="quiet icon" aria-label="Smaller" disabled={!zoom} onClick={() => resize(2)}>−</button>
        <button type="button" class="quiet" disabled={!zoom} onClick={() => set_zoom(null)}>Whole run</button>
      </div>
      <div
        ref={element}
        class="lanes"
        onPointerDown={(event) => {
          if (event.button !== 0) return;
          event.currentTarget.setPointerCapture(event.pointerId);
          set_drag({ from: at(event), to: at(event) });
        }}
        onPointerMove={(event) => drag && set_drag({ from: drag.from, to: at(event) })}
        onPointerCancel={() => set_drag(null)}
        onPointerUp={() => {
          if (drag && Math.abs(drag.to - drag.from) > 0.01) {
            const [a, b] = [Math.min(drag.from, drag.to), Math.max(drag.from, drag.to)];
            set_zoom(clamp_span([from + a * (to - from), from + b * (to - from)], whole));
          }
          set_drag(null);
        }}
        onDblClick={() => set_zoom(null)}
      >
        <div class="attempt-lane">
          {attempts.map((attempt) => <Bar key={attempt.attempt} attempt={attempt} from={from} scale={scale} end={end} />)}
        </div>
        <Marks events={events} from={from} scale={scale} />
        <div class="axis" aria-hidden="true">
          {ticks(length_s, 6).map((tick) => (
            <span style={{ left: `${(tick / Math.max(0.001, length_s)) * 100}%` }}>{tick + start_s < 60 ? `${Math.round((tick + start_s) * 10) / 10} s` : clock_text(tick + start_s)}</span>
          ))}
        </div>
        {drag && <div class="dragged" style={{ left: `${Math.min(drag.from, drag.to) * 100}%`, width: `${Math.abs(drag.to - drag.from) * 100}%` }} />}
      </div>
    </div>
  );
}
