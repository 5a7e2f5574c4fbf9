// SPDX-License-Identifier: Apache-2.0
// What is not a failure and yet should be seen: lost nodes, troubles of muster's own, processes
// that were left, and who waits for a key of the store.
import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { get_rows, type Job, type JobNode, type StoreWaiter } from "../api";
import { plural, span_text, time_text } from "../format";
import { link, model } from "../live";
import { href, logs_route } from "../router";

const kPollMs = 5_000;
const kWaitsLongS = 10; // a rendezvous takes seconds; longer is worth a word
const kMostRows = 8;

const waiters = signal<StoreWaiter[]>([]);

// Ranks that hang in init_process_group or a barrier wait for a key that nobody sets.
function useStoreWaiters(job: Job): void {
  const asks = job.live && job.phase === "running" && link.value.state === "open";
  useEffect(() => {
    if (!asks) {
      waiters.value = [];
      return;
    }
    const ask = () => {
      if (document.visibilityState === "hidden") return;
      get_rows<{ store_waiters?: StoreWaiter[] }>("/status")
        .then((status) => (waiters.value = status.store_waiters ?? []))
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
      <h2 id="lost-title"><span class="badge failed" aria-hidden="true">✕</span> {plural(lost.length, "node")} lost</h2>
      <ul>
        {lost.slice(-kMostRows).map((node) => (
          <li key={node.id}>
            <strong class="foreign">{node.host}</strong>{" "}
            <span class="foreign muted">{node.lost?.message} {node.address ? `(${node.address})` : ""}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}

function waited_s(waiter: StoreWaiter): number {
  return waiter.waited_s ?? 0;
}

function Waiters({ job }: { job: Job }) {
  useStoreWaiters(job);
  const long = waiters.value.filter((waiter) => waited_s(waiter) >= kWaitsLongS).sort((a, b) => waited_s(b) - waited_s(a));
  if (!long.length) return null;
  return (
    <section class="card notice-card" aria-labelledby="waiters-title">
      <h2 id="waiters-title"><span class="badge waiting" aria-hidden="true">…</span> {plural(long.length, "client waits", "clients wait")} for the store</h2>
      <p class="muted">A key that nobody sets usually means that another rank has not come as far, or died before.</p>
      <ul>
        {long.slice(0, kMostRows).map((waiter) => (
          <li>
            {waiter.rank != null && waiter.rank >= 0
              ? <a href={href(logs_route({ attempt: job.attempt, ranks: waiter.rank, offset: "end" }))}>rank {waiter.rank}</a>
              : <span class="foreign">{waiter.client ?? "a client"}</span>}{" "}
            waits {span_text(waited_s(waiter))} for <code class="foreign">{waiter.keys.join(", ")}</code>
          </li>
        ))}
      </ul>
      {long.length > kMostRows && <p class="muted">and {long.length - kMostRows} more</p>}
    </section>
  );
}

function Troubles({ job }: { job: Job }) {
  const leftovers = job.leftovers ?? [];
  const troubles = job.troubles ?? [];
  if (!troubles.length && !leftovers.length) return null;
  return (
    <section class="card notice-card" aria-labelledby="troubles-title">
      <h2 id="troubles-title"><span class="badge waiting" aria-hidden="true">!</span> Trouble besides the workers</h2>
      <ul>
        {troubles.slice(-kMostRows).reverse().map((trouble) => (
          <li>
            <time class="muted">{time_text(trouble.time_us)}</time> <strong class="foreign">{trouble.subject}</strong>{" "}
            <span class="foreign">{trouble.message}</span>
          </li>
        ))}
        {leftovers.slice(-kMostRows).map((leftover) => (
          <li>
            <strong>process {leftover.pid} outlived its worker</strong> <code class="foreign">{leftover.command}</code>{" "}
            <span class="foreign muted">{leftover.ended ? leftover.fate : `still there: ${leftover.fate}`}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Stopped({ job }: { job: Job }) {
  if (!job.stop) return null;
  const { signal: name, sender, host, text } = job.stop;
  return (
    <p class="stopped-by foreign">
      {text || `Stopped by ${name ?? "request"}${sender ? ` from ${sender}` : ""}${host ? ` on ${host}` : ""}`}
    </p>
  );
}

export function Notices({ job }: { job: Job }) {
  return (
    <>
      <Stopped job={job} />
      <LostNodes nodes={model.value.nodes} />
      <Waiters job={job} />
      <Troubles job={job} />
    </>
  );
}
