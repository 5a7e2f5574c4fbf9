// SPDX-License-Identifier: Apache-2.0
// The run from left to right: its attempts as bars, what befell them as marks. A part of it can be
// drawn larger by dragging over it; the list of events then shows that part.
import { useState } from "preact/hooks";
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
  const steps = [
    0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 14_400, 28_800,
    43_200, 86_400,
  ];
  const step =
    steps.find((candidate) => length_s / candidate <= most) ??
    Math.ceil(length_s / most / 86_400) * 86_400;
  return Array.from({ length: Math.floor(length_s / step) + 1 }, (_, i) => i * step);
}

function Bar({
  attempt,
  from,
  scale,
  end,
}: {
  attempt: Attempt;
  from: number;
  scale: number;
  end: number;
}) {
  const tone = kAttemptTones[attempt.state];
  const left = Math.max(0, (attempt.started_us - from) * scale);
  const right = Math.min(100, ((attempt.ended_us ?? end) - from) * scale);
  if (right < 0 || left > 100) return null;
  const took = span_text(((attempt.ended_us ?? end) - attempt.started_us) / 1e6);
  const title = `attempt ${attempt.attempt}: ${attempt.state}, ${took}`;
  return (
    <div
      class={`attempt-bar ${tone}`}
      title={title}
      style={{ left: `${left}%`, width: `${Math.max(0.3, right - left)}%` }}
    >
      <span>
        <span aria-hidden="true">{kToneMarks[tone]}</span> {title}
      </span>
    </div>
  );
}

// Parts of an attempt in which nothing moved.
function Stalls({
  attempts,
  from,
  scale,
  end,
}: {
  attempts: readonly Attempt[];
  from: number;
  scale: number;
  end: number;
}) {
  const stalls = attempts.flatMap((attempt) =>
    (attempt.stalls ?? []).map((stall) => ({
      stall,
      until:
        stall.lasted_us != null
          ? stall.since_us + stall.lasted_us
          : stall.over
            ? (attempt.ended_us ?? end)
            : end,
    })),
  );
  return stalls.map(({ stall, until }) => {
    const left = Math.max(0, (stall.since_us - from) * scale);
    const right = Math.min(100, (until - from) * scale);
    if (right < 0 || left > 100 || right < left) return null;
    const title = `no progress for ${span_text((until - stall.since_us) / 1e6)}: ${stall.text}`;
    return (
      <div
        class="stall-bar"
        title={title}
        style={{ left: `${left}%`, width: `${Math.max(0.3, right - left)}%` }}
      />
    );
  });
}

const kMarked = new Set<Group>(["failures", "nodes", "signals", "trouble"]);

function Marks({
  events,
  from,
  scale,
}: {
  events: readonly JobEvent[];
  from: number;
  scale: number;
}) {
  const marks = events.filter(
    (event) =>
      kMarked.has(group_of(event)) &&
      event.event !== "victims_found" &&
      event.event !== "nodes_awaited",
  );
  return (
    <div class="event-marks">
      {marks.slice(-kMaxMarks).map((event) => {
        const left = (event_time_us(event) - from) * scale;
        return (
          left >= 0 &&
          left <= 100 && (
            <i
              key={event.seq}
              class={`${group_of(event)} ${event.event}`}
              title={event_text(event)}
              style={{ left: `${left}%` }}
            />
          )
        );
      })}
    </div>
  );
}

interface ToolsProps {
  text: string;
  whole_shown: boolean;
  pan: (part: number) => void;
  resize: (factor: number) => void;
  reset: () => void;
}

function Tools({ text, whole_shown, pan, resize, reset }: ToolsProps) {
  const steps: [sign: string, name: string, act: () => void, off: boolean][] = [
    ["‹", "Earlier", () => pan(-0.5), whole_shown],
    ["›", "Later", () => pan(0.5), whole_shown],
    ["+", "Larger", () => resize(0.5), false],
    ["−", "Smaller", () => resize(2), whole_shown],
  ];
  return (
    <div class="timeline-tools">
      <span class="muted">{text}</span>
      {steps.map(([sign, name, act, off]) => (
        <button type="button" class="quiet icon" aria-label={name} disabled={off} onClick={act}>
          {sign}
        </button>
      ))}
      <button type="button" class="quiet" disabled={whole_shown} onClick={reset}>
        Whole run
      </button>
    </div>
  );
}

function Axis({ start_s, length_s }: { start_s: number; length_s: number }) {
  const label = (at_s: number) =>
    at_s < 60 ? `${Math.round(at_s * 10) / 10} s` : clock_text(at_s);
  return (
    <div class="axis" aria-hidden="true">
      {ticks(length_s, 6).map((tick) => (
        <span style={{ left: `${(tick / Math.max(0.001, length_s)) * 100}%` }}>
          {label(tick + start_s)}
        </span>
      ))}
    </div>
  );
}

// A part that is chosen with the pointer, as fractions of the width.
function useDrag(on_chosen: (from: number, to: number) => void) {
  const [drag, set_drag] = useState<{ from: number; to: number } | null>(null);
  const at = (event: PointerEvent): number => {
    const box = (event.currentTarget as HTMLElement).getBoundingClientRect();
    return Math.min(1, Math.max(0, (event.clientX - box.left) / box.width));
  };
  const left = drag ? Math.min(drag.from, drag.to) : 0;
  const right = drag ? Math.max(drag.from, drag.to) : 0;
  const listeners = {
    onPointerDown: (event: PointerEvent) => {
      if (event.button !== 0) return;
      (event.currentTarget as HTMLElement).setPointerCapture(event.pointerId);
      set_drag({ from: at(event), to: at(event) });
    },
    onPointerMove: (event: PointerEvent) => {
      if (drag) set_drag({ from: drag.from, to: at(event) });
    },
    onPointerCancel: () => set_drag(null),
    onPointerUp: () => {
      if (right - left > 0.01) on_chosen(left, right);
      set_drag(null);
    },
  };
  const shade = drag && (
    <div class="dragged" style={{ left: `${left * 100}%`, width: `${(right - left) * 100}%` }} />
  );
  return { listeners, shade };
}

export function Timeline({ job, attempts, events, whole, zoom, set_zoom }: Props) {
  const [from, to] = zoom ?? whole;
  const length = to - from;
  const scale = 100 / Math.max(1, length);
  const end = job.ended_us ?? (job.live ? now_us() : whole[1]);
  const zoom_to = (next: Span) => set_zoom(clamp_span(next, whole));
  const { listeners, shade } = useDrag((a, b) => zoom_to([from + a * length, from + b * length]));
  const resize = (factor: number) => {
    const middle = (from + to) / 2;
    const half = (length * factor) / 2;
    if (2 * half >= whole[1] - whole[0]) set_zoom(null);
    else zoom_to([middle - half, middle + half]);
  };
  const pan = (part: number) => zoom_to([from + part * length, to + part * length]);
  const start_s = (from - whole[0]) / 1e6;
  const length_s = length / 1e6;
  const shown = `${clock_text(start_s)} to ${clock_text(start_s + length_s)}`;
  return (
    <div class="timeline">
      <Tools
        text={zoom ? shown : "drag over a part to see it larger"}
        whole_shown={!zoom}
        pan={pan}
        resize={resize}
        reset={() => set_zoom(null)}
      />
      <div class="lanes" {...listeners} onDblClick={() => set_zoom(null)}>
        <div class="attempt-lane">
          {attempts.map((attempt) => (
            <Bar key={attempt.attempt} attempt={attempt} from={from} scale={scale} end={end} />
          ))}
          <Stalls attempts={attempts} from={from} scale={scale} end={end} />
        </div>
        <Marks events={events} from={from} scale={scale} />
        <Axis start_s={start_s} length_s={length_s} />
        {shade}
      </div>
    </div>
  );
}
