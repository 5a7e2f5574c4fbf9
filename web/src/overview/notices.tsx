// SPDX-License-Identifier: Apache-2.0
// What is not a failure and yet should be seen: lost nodes, troubles of muster's own, processes
// that were left, and who waits for a key of the store.
import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import {
  get_rows,
  type Attempt,
  type Collective,
  type Job,
  type JobNode,
  type Status,
  type StoreStatus,
} from "../api";
import { plural, span_text, time_text } from "../format";
import { link, model } from "../live";
import { Operations } from "./failure";
import { Ranks } from "./ranks_link";

const kPollMs = 5_000;
const kMostRows = 8;

const status = signal<Status | null>(null);

// What the server finds strange in a running job: ranks that wait for a key that nobody sets, or
// fell silent while others speak.
function useStatus(job: Job): void {
  const asks = job.live && (job.phase === "running" || job.phase === "stalled") && link.value.state === "open";
  useEffect(() => {
    if (!asks) {
      status.value = null;
      return;
    }
    const ask = () => {
      if (document.visibilityState === "hidden") return;
      get_rows<Status>("/status")
        .then((answer) => (status.value = answer))
        .catch(() => {}); // the link's own bar tells
    };
    ask();
    const timer = setInterval(ask, kPollMs);
    return () => clearInterval(timer);
  }, [asks]);
}

function LostNodes({ nodes }: { nodes: readonly JobNode[] }) {
  const lost = nodes.filter((node) => !node.here && node.lost && node.lost.how !== "left");
  if (!lost.length) return null;
  return (
    <section class="card notice-card" aria-labelledby="lost-title">
      <h2 id="lost-title">
        <span class="badge failed" aria-hidden="true">
          ✕
        </span>{" "}
        {plural(lost.length, "node")} lost
      </h2>
      <ul>
        {lost.slice(-kMostRows).map((node) => (
          <li key={node.id}>
            <strong class="foreign">{node.host}</strong>{" "}
            <span class="foreign muted">
              {node.lost?.message} {node.address ? `(${node.address})` : ""}
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}

function StoreWaits({ job, store }: { job: Job; store: StoreStatus }) {
  return (
    <details class="fold">
      <summary>Who waits for what in the store</summary>
      <ul>
        {store.waits.map((group) => (
          <li>
            {group.ranks ? (
              <Ranks job={job} ranks={group.ranks} />
            ) : (
              plural(group.waiters, "process", "processes")
            )}{" "}
            up to {span_text(group.longest_s)} for{" "}
            <code class="foreign">{group.keys.join(", ")}</code>
            {group.key_count > group.keys.length && (
              <span class="muted"> and {group.key_count - group.keys.length} more keys</span>
            )}
            {group.barrier && <span class="muted"> (a barrier)</span>}
          </li>
        ))}
      </ul>
      {store.other_ranks && (
        <p class="muted">
          Not waiting: <Ranks job={job} ranks={store.other_ranks} />
        </p>
      )}
    </details>
  );
}

// The first ones are said above.
function Collectives({ job, found }: { job: Job; found: readonly Collective[] }) {
  if (!found.length) return null;
  return (
    <details class="fold">
      <summary>Who waits in which operation</summary>
      <ul>
        {found.map((one) => (
          <li>
            <span class="foreign">{one.text}</span>
            {one.suspects && (
              <span>
                {" "}
                · logs of <Ranks job={job} ranks={one.suspects} />
              </span>
            )}
          </li>
        ))}
      </ul>
    </details>
  );
}

// A job that was stopped has no failure to show them with.
function AtTheEnd({ attempt }: { attempt: Attempt | undefined }) {
  if (!attempt?.collectives?.length || attempt.failure) return null;
  return (
    <section class="card notice-card" aria-labelledby="operations-title">
      <h2 id="operations-title">What the workers were doing when they were stopped</h2>
      <Operations attempt={attempt} />
    </section>
  );
}

// The stall, lost nodes and muster's own troubles have cards of their own.
function attention_lines(job: Job, nodes: readonly JobNode[]): string[] {
  const elsewhere = (line: string) =>
    job.troubles.some((trouble) => line.startsWith(`${trouble.subject}: `)) ||
    job.stall?.text === line ||
    nodes.some((node) => node.lost?.message === line);
  return (status.value?.attention ?? []).filter((line) => !elsewhere(line));
}

function Attention({ job, nodes }: { job: Job; nodes: readonly JobNode[] }) {
  useStatus(job);
  const lines = attention_lines(job, nodes);
  const store = status.value?.store;
  if (!lines.length) return null;
  return (
    <section class="card notice-card" aria-labelledby="attention-title">
      <h2 id="attention-title">
        <span class="badge waiting" aria-hidden="true">
          !
        </span>{" "}
        Needs attention
      </h2>
      <div role="status">
        <ul>
          {lines.map((line) => (
            <li class="foreign">{line}</li>
          ))}
        </ul>
      </div>
      <Collectives job={job} found={status.value?.collectives ?? []} />
      {store && store.waits.length > 0 && <StoreWaits job={job} store={store} />}
    </section>
  );
}

function Troubles({ job }: { job: Job }) {
  const leftovers = job.leftovers ?? [];
  const troubles = job.troubles ?? [];
  if (!troubles.length && !leftovers.length) return null;
  return (
    <section class="card notice-card" aria-labelledby="troubles-title">
      <h2 id="troubles-title">
        <span class="badge waiting" aria-hidden="true">
          !
        </span>{" "}
        Trouble besides the workers
      </h2>
      <ul>
        {troubles
          .slice(-kMostRows)
          .reverse()
          .map((trouble) => (
            <li>
              <time class="muted">{time_text(trouble.time_us)}</time>{" "}
              <strong class="foreign">{trouble.subject}</strong>{" "}
              <span class="foreign">{trouble.message}</span>
            </li>
          ))}
        {leftovers.slice(-kMostRows).map((leftover) => (
          <li>
            <strong>process {leftover.pid} outlived its worker</strong>{" "}
            <code class="foreign">{leftover.command}</code>{" "}
            <span class="foreign muted">
              {leftover.ended ? leftover.fate : `still there: ${leftover.fate}`}
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Stopped({ job }: { job: Job }) {
  if (!job.stop) return null;
  const { signal: name, sender, host, text } = job.stop;
  if (text && job.summary.includes(text)) return null;
  return (
    <p class="stopped-by foreign">
      {text ||
        `Stopped by ${name ?? "request"}${sender ? ` from ${sender}` : ""}${host ? ` on ${host}` : ""}`}
    </p>
  );
}

export function Notices({ job }: { job: Job }) {
  const { nodes, attempts } = model.value;
  return (
    <>
      <Stopped job={job} />
      <AtTheEnd attempt={attempts.at(-1)} />
      <LostNodes nodes={nodes} />
      <Attention job={job} nodes={nodes} />
      <Troubles job={job} />
    </>
  );
}
