// SPDX-License-Identifier: Apache-2.0
// The second that ages and clocks are drawn with. It stands still while nobody looks.
import { signal } from "@preact/signals";
import { server_now_us } from "./live";
import type { Job } from "./api";

export const now_ms = signal(Date.now());

export function start_clock(): void {
  setInterval(() => {
    if (document.visibilityState !== "hidden") now_ms.value = Date.now();
  }, 1_000);
}

// The server's clock, in microseconds; read in a component it draws it again every second.
export function now_us(): number {
  void now_ms.value;
  return server_now_us();
}

// Until when the job's clock runs: its end, or for a killed run the last that is known of it.
export function job_end_us(job: Job, last_event_us: number): number {
  if (job.ended_us) return job.ended_us;
  return job.live ? now_us() : last_event_us || job.started_us;
}
