// SPDX-License-Identifier: Apache-2.0
// One small chart: the mean of all ranks as a line, their range as a band behind it.
import { signal } from "@preact/signals";
import { clock_text, time_text } from "../format";
import { useWidth } from "../width";
import type { Point } from "./history";

// Where the pointer is in time, so that all charts show the same moment.
const pointed_us = signal<number | null>(null);

interface Props {
  title: string;
  points: readonly Point[];
  format: (value: number) => string;
  from_us: number;
  to_us: number;
  zero: boolean; // the axis begins at 0
  marks_us: readonly number[]; // beginnings of attempts
}

const kHeight = 64;

function range_of(points: readonly Point[], zero: boolean): [number, number] {
  let low = zero ? 0 : Infinity;
  let high = -Infinity;
  for (const point of points) {
    low = Math.min(low, point.min);
    high = Math.max(high, point.max);
  }
  if (high <= low) high = low + (Math.abs(low) || 1);
  return [low, high];
}

// The point that is nearest in time.
export function nearest(points: readonly Point[], time_us: number): Point | undefined {
  let low = 0;
  let high = points.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((points[middle]?.time_us ?? 0) < time_us) low = middle + 1;
    else high = middle;
  }
  const after = points[low];
  const before = points[low - 1];
  return before && after && time_us - before.time_us < after.time_us - time_us ? before : after;
}

function Plot({
  points,
  from_us,
  to_us,
  zero,
  marks_us,
  width,
}: Omit<Props, "title" | "format"> & { width: number }) {
  const [low, high] = range_of(points, zero);
  const span = Math.max(1, to_us - from_us);
  const x = (time_us: number) =>
    Math.round(((time_us - from_us) / span) * (width - 2) * 10) / 10 + 1;
  const y = (value: number) =>
    Math.round((kHeight - 3 - ((value - low) / (high - low)) * (kHeight - 6)) * 10) / 10;
  const line = points.map((point) => `${x(point.time_us)} ${y(point.mean)}`).join("L");
  const upper = points.map((point) => `${x(point.time_us)} ${y(point.max)}`);
  const lower = points.map((point) => `${x(point.time_us)} ${y(point.min)}`).reverse();
  const at = pointed_us.value;
  const point = at === null ? undefined : nearest(points, at);
  return (
    <svg width={width} height={kHeight} aria-hidden="true">
      {marks_us.map((mark) => (
        <path class="mark" d={`M${x(mark)} 0V${kHeight}`} />
      ))}
      <path class="base" d={`M0 ${kHeight - 0.5}H${width}`} />
      <path class="band" d={`M${[...upper, ...lower].join("L")}Z`} />
      <path class="line" d={`M${line}`} />
      {points.length === 1 && points[0] && (
        <circle class="dot" cx={x(points[0].time_us)} cy={y(points[0].mean)} r="2" />
      )}
      {point && <path class="cross" d={`M${x(point.time_us)} 0V${kHeight}`} />}
      {point && <circle class="dot" cx={x(point.time_us)} cy={y(point.mean)} r="3" />}
    </svg>
  );
}

export function Chart(props: Props) {
  const { title, points, format, from_us, to_us } = props;
  const { element, width } = useWidth();
  const at = pointed_us.value;
  const point = at === null ? points.at(-1) : nearest(points, at);
  const spread =
    point && point.max > point.min ? `${format(point.min)} – ${format(point.max)}` : "";
  const when =
    at !== null && point
      ? `${time_text(point.time_us)} (+${clock_text((point.time_us - from_us) / 1e6)})`
      : "";
  return (
    <figure class="chart">
      <figcaption>
        <span class="name">{title}</span>
        <span class="value">{point ? format(point.mean) : "–"}</span>
        <span class="muted spread">{when || spread || " "}</span>
      </figcaption>
      <div
        ref={element}
        class="plot"
        onPointerMove={(event) => {
          const box = event.currentTarget.getBoundingClientRect();
          pointed_us.value = from_us + ((event.clientX - box.left) / box.width) * (to_us - from_us);
        }}
        onPointerLeave={() => (pointed_us.value = null)}
      >
        {width > 0 && points.length > 0 && <Plot {...props} width={width} />}
      </div>
    </figure>
  );
}
