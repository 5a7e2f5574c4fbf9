// SPDX-License-Identifier: Apache-2.0
// Measurements of all ranks over time, folded into a bounded number of buckets: the mean and the
// range of each. A run of any length and any number of ranks takes the same memory.
import type { Sample } from "../api";

export const kMetrics = [
  "loss",
  "steps_per_s",
  "cpu",
  "rss_bytes",
  "gpu",
  "gpu_memory_bytes",
] as const;
export type Metric = (typeof kMetrics)[number];

export const kMaxBuckets = 360;
const kFirstWidthUs = 2_000_000;

interface Bucket {
  sum: number;
  count: number;
  min: number;
  max: number;
}

export interface Point {
  time_us: number;
  mean: number;
  min: number;
  max: number;
}

function join(one: Bucket, other: Bucket): Bucket {
  return {
    sum: one.sum + other.sum,
    count: one.count + other.count,
    min: Math.min(one.min, other.min),
    max: Math.max(one.max, other.max),
  };
}

export class History {
  private width_us = kFirstWidthUs;
  private first_us = 0;
  private last_us = 0;
  private readonly buckets = new Map<Metric, Map<number, Bucket>>();
  private readonly seen = new Map<number, number>(); // rank -> time of its last sample

  // Samples of one rank come in the order of time; one that was there before is passed over.
  add(samples: readonly Sample[]): void {
    for (const sample of samples) {
      if (!(sample.time_us > (this.seen.get(sample.rank) ?? 0))) continue;
      this.seen.set(sample.rank, sample.time_us);
      this.make_room(sample.time_us);
      for (const metric of kMetrics) {
        const value = sample[metric];
        if (value == null || !Number.isFinite(value) || (metric !== "loss" && value < 0)) continue;
        this.put(metric, sample.time_us, value);
      }
    }
  }

  // One value that is not a sample's: a point parsed from a log.
  add_value(metric: Metric, time_us: number, value: number): void {
    this.make_room(time_us);
    this.put(metric, time_us, value);
  }

  points(metric: Metric): Point[] {
    const buckets = [...(this.buckets.get(metric) ?? [])].sort(([a], [b]) => a - b);
    return buckets.map(([at, bucket]) => ({
      time_us: (at + 0.5) * this.width_us,
      mean: bucket.sum / bucket.count,
      min: bucket.min,
      max: bucket.max,
    }));
  }

  private put(metric: Metric, time_us: number, value: number): void {
    let buckets = this.buckets.get(metric);
    if (!buckets) this.buckets.set(metric, (buckets = new Map()));
    const at = Math.floor(time_us / this.width_us);
    const one = { sum: value, count: 1, min: value, max: value };
    const old = buckets.get(at);
    buckets.set(at, old ? join(old, one) : one);
  }

  private make_room(time_us: number): void {
    this.first_us = this.first_us ? Math.min(this.first_us, time_us) : time_us;
    this.last_us = Math.max(this.last_us, time_us);
    while ((this.last_us - this.first_us) / this.width_us > kMaxBuckets) this.widen();
  }

  private widen(): void {
    this.width_us *= 2;
    for (const [metric, old] of this.buckets) {
      const wider = new Map<number, Bucket>();
      for (const [at, bucket] of old) {
        const to = Math.floor(at / 2);
        const there = wider.get(to);
        wider.set(to, there ? join(there, bucket) : bucket);
      }
      this.buckets.set(metric, wider);
    }
  }
}
