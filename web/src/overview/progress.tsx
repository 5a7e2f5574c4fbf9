// SPDX-License-Identifier: Apache-2.0
// How far the workers are and what they use: a bar and small charts, of whatever is known.
import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import {
  api_url,
  get_json,
  type Attempt,
  type Job,
  type Sample,
  type SamplesMessage,
  type SeriesPoint,
} from "../api";
import { bytes_text, clock_text, number_text } from "../format";
import { model } from "../live";
import { Chart } from "./chart";
import { History, type Metric } from "./history";

interface Recorded {
  run_id: string;
  history: History;
  of: string; // whom it is about
  version: number;
}

// Kept while other views are shown.
const recorded = signal<Recorded | null>(null);

function update(run_id: string, change: (history: History) => void, of = "all ranks"): void {
  const old = recorded.peek();
  const history = old?.run_id === run_id ? old.history : new History();
  change(history);
  recorded.value = { run_id, history, of, version: (old?.version ?? 0) + 1 };
}

const kSeriesAttempts = 5; // the last of them

// Steps have a rate only between two points.
function add_series(history: History, points: readonly SeriesPoint[]): void {
  let before: [time_us: number, step: number] | null = null;
  for (const [time_us, step, , loss] of points) {
    if (!time_us) continue;
    if (loss != null) history.add_value("loss", time_us, loss);
    if (step == null || step < 0) continue;
    if (before && step > before[1] && time_us > before[0]) {
      const rate = ((step - before[1]) * 1e6) / (time_us - before[0]);
      history.add_value("steps_per_s", time_us, rate);
    }
    before = [time_us, step];
  }
}

// What a log says of its progress, for a run that nobody measured.
async function load_series(job: Job, attempts: readonly Attempt[]): Promise<void> {
  // One that has written something stands for all: they take their steps together.
  const speaker = [...model.peek().ranks.values()].find((row) => row.stdout || row.stderr);
  if (!speaker) return;
  const { rank } = speaker;
  for (const attempt of attempts.slice(-kSeriesAttempts)) {
    if (attempt.world_size <= rank) continue;
    const url = `/api/v1/series/${attempt.attempt}/${rank}`;
    const { points } = await get_json<{ points: SeriesPoint[] }>(url);
    if (points.length > 0)
      update(job.run_id, (history) => add_series(history, points), `rank ${rank}, by its log`);
  }
}

async function load(job: Job, attempts: readonly Attempt[]): Promise<void> {
  const { samples } = await get_json<SamplesMessage>(api_url("/api/v1/samples", { history: 1 }));
  update(job.run_id, (history) => history.add(samples));
  const history = recorded.peek()?.history;
  if (job.log_dir && !history?.points("loss").length && !history?.points("steps_per_s").length)
    await load_series(job, attempts);
}

function useHistory(job: Job): History | null {
  const { samples, attempts } = model.value;
  const here = recorded.value?.run_id === job.run_id;
  useEffect(() => {
    // Charts are an extra: without them the page is whole, and the server says its troubles elsewhere.
    if (!here) load(job, attempts).catch(() => update(job.run_id, () => {}));
  }, [job.run_id]);
  useEffect(() => {
    if (here && samples.size) update(job.run_id, (history) => history.add([...samples.values()]));
  }, [samples, here]);
  return recorded.value?.history ?? null;
}

interface Steps {
  least: number;
  median: number;
  most: number;
  steps: number | null;
  slowest: number; // the rank that has done least
  rate: number | null;
}

export function steps_of(samples: Iterable<Sample>): Steps | null {
  const all = [...samples].filter((sample) => sample.step != null && sample.step >= 0);
  all.sort((a, b) => (a.step ?? 0) - (b.step ?? 0));
  const first = all[0];
  if (!first) return null;
  const middle = all[all.length >> 1];
  const rates = all.flatMap((sample) =>
    sample.steps_per_s != null && sample.steps_per_s > 0 ? [sample.steps_per_s] : [],
  );
  rates.sort((a, b) => a - b);
  return {
    least: first.step ?? 0,
    median: middle?.step ?? 0,
    most: all.at(-1)?.step ?? 0,
    steps: middle?.steps != null && middle.steps > 0 ? middle.steps : null,
    slowest: first.rank,
    rate: rates[rates.length >> 1] ?? null,
  };
}

function ProgressBar({ job, samples }: { job: Job; samples: ReadonlyMap<number, Sample> }) {
  const steps = steps_of(samples.values());
  if (!steps) return null;
  const part = steps.steps ? Math.min(1, steps.median / steps.steps) : null;
  const least = steps.steps ? Math.min(1, steps.least / steps.steps) : null;
  const left_s = steps.steps && steps.rate ? (steps.steps - steps.median) / steps.rate : null;
  const text = `step ${steps.median}${steps.steps ? ` of ${steps.steps}` : ""}`;
  return (
    <div class="progress">
      <p>
        <strong>{text}</strong>
        {part !== null && <span> · {Math.floor(part * 100)} %</span>}
        {steps.rate !== null && <span class="muted"> · {number_text(steps.rate)} steps/s</span>}
        {left_s !== null && job.phase === "running" && left_s > 0 && (
          <span class="muted"> · about {clock_text(left_s)} left</span>
        )}
        {steps.most - steps.least > 1 && (
          <span class="muted">
            {" "}
            · rank {steps.slowest} is at {steps.least}, the fastest at {steps.most}
          </span>
        )}
      </p>
      {part !== null && (
        <div
          class="bar"
          role="progressbar"
          aria-label="Progress"
          aria-valuenow={Math.floor(part * 100)}
          aria-valuemin={0}
          aria-valuemax={100}
        >
          <b style={{ width: `${part * 100}%` }} />
          {least !== null && <i style={{ width: `${least * 100}%` }} />}
        </div>
      )}
    </div>
  );
}

const kCharts: {
  metric: Metric;
  title: string;
  zero: boolean;
  format: (value: number) => string;
}[] = [
  { metric: "loss", title: "loss", zero: false, format: number_text },
  { metric: "steps_per_s", title: "steps a second", zero: true, format: number_text },
  { metric: "cpu", title: "CPU cores", zero: true, format: number_text },
  { metric: "rss_bytes", title: "memory", zero: true, format: bytes_text },
  { metric: "gpu", title: "GPU", zero: true, format: (value) => `${Math.round(value * 100)} %` },
  { metric: "gpu_memory_bytes", title: "GPU memory", zero: true, format: bytes_text },
];

export function ProgressCard({ job, current }: { job: Job; current: boolean }) {
  const { samples, attempts } = model.value;
  const history = useHistory(job);
  const charts = kCharts
    .map((chart) => ({ ...chart, points: history?.points(chart.metric) ?? [] }))
    .filter((chart) => chart.points.length > 0);
  const has_steps = current && steps_of(samples.values()) !== null;
  if (!charts.length && !has_steps) return null;
  const from_us = job.started_us;
  const last_us = Math.max(
    ...charts.flatMap((chart) => chart.points.at(-1)?.time_us ?? 0),
    from_us + 1e6,
  );
  return (
    <section class="card progress-card" aria-labelledby="progress-title">
      <h2 id="progress-title">
        Progress and use{" "}
        <span class="muted">{charts.length ? `of ${recorded.value?.of ?? "all ranks"}` : ""}</span>
      </h2>
      {has_steps && <ProgressBar job={job} samples={samples} />}
      <div class="charts">
        {charts.map(({ metric, ...chart }) => (
          <Chart
            key={metric}
            {...chart}
            from_us={from_us}
            to_us={Math.max(job.ended_us ?? 0, last_us)}
            marks_us={attempts.slice(1).map((attempt) => attempt.started_us)}
          />
        ))}
      </div>
    </section>
  );
}
