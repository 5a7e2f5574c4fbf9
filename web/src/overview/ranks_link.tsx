// SPDX-License-Identifier: Apache-2.0
// Ranks that are named, as the way to their logs.
import type { Job } from "../api";
import { href, logs_route } from "../router";

export function Ranks({
  job,
  ranks,
  attempt = job.attempt,
}: {
  job: Job;
  ranks: string;
  attempt?: number;
}) {
  return (
    <a href={href(logs_route({ attempt, ranks, offset: "end" }))}>
      {ranks.includes(",") || ranks.includes("-") ? "ranks" : "rank"} {ranks}
    </a>
  );
}
