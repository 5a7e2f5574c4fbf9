// SPDX-License-Identifier: Apache-2.0
// While the job waits for nodes: who is here, who is missing, how long it will wait.
import type { Job, JobNode, Waiting } from "../api";
import { clock_text, plural } from "../format";
import { now_us } from "../now";

function TimeLeft({ job, waiting }: { job: Job; waiting: Waiting }) {
  if (waiting.left_s == null || waiting.left_s < 0) return null;
  const left = waiting.left_s - (now_us() - job.now_us) / 1e6;
  return (
    <p class="time-left">
      <span class="value">{clock_text(left)}</span>
      <span class="muted">
        {waiting.have >= waiting.min ? "until it begins with those it has" : "until it gives up"}
      </span>
    </p>
  );
}

function Places({ waiting }: { waiting: Waiting }) {
  const places = Math.min(waiting.max, 64);
  return (
    <div class="places" aria-hidden="true">
      {Array.from({ length: places }, (_, i) => (
        <span class={i < waiting.have ? "here" : i < waiting.min ? "missing" : "spare"} />
      ))}
    </div>
  );
}

export function WaitingCard({
  job,
  waiting,
  nodes,
}: {
  job: Job;
  waiting: Waiting;
  nodes: readonly JobNode[];
}) {
  const missing = Math.max(0, waiting.min - waiting.have);
  const here = nodes.filter((node) => node.here);
  const gone = nodes.filter((node) => !node.here);
  return (
    <section class="card waiting" aria-labelledby="waiting-title">
      <h2 id="waiting-title">
        <span class="badge waiting" aria-hidden="true">
          …
        </span>
        <span>
          {waiting.have} of{" "}
          {waiting.min === waiting.max ? waiting.max : `${waiting.min} to ${waiting.max}`} nodes are
          here
          <span class="message">
            {missing
              ? `${plural(missing, "node")} missing`
              : `enough to begin; there is room for ${waiting.max - waiting.have} more`}
          </span>
        </span>
      </h2>
      <Places waiting={waiting} />
      <TimeLeft job={job} waiting={waiting} />
      <ul class="hosts" aria-label="Nodes that are here">
        {here.length
          ? here.map((node) => (
              <li class="chip">
                <span class="foreign">{node.host}</span>{" "}
                <span class="muted">
                  {plural(node.workers, "worker")}
                  {node.spare ? ", spare" : ""}
                </span>
              </li>
            ))
          : waiting.hosts.map((host) => <li class="chip foreign">{host}</li>)}
      </ul>
      {gone.length > 0 && (
        <p class="muted">
          Gone:{" "}
          {gone.map((node, i) => (
            <>
              {i > 0 && ", "}
              <span class="foreign">
                {node.host}
                {node.lost ? ` (${node.lost.message})` : ""}
              </span>
            </>
          ))}
        </p>
      )}
    </section>
  );
}
