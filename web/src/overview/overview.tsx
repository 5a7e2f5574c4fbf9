// SPDX-License-Identifier: Apache-2.0
// The job at a glance: what failed comes first, then who is waited for, then how the ranks are.
import { useEffect, useMemo, useState } from "preact/hooks";
import { api_url, get_rows, type Attempt, type Job, type Rank } from "../api";
import { parse_ranks, plural } from "../format";
import { Guard } from "../guard";
import { link, model } from "../live";
import { navigate, route } from "../router";
import { FailureCard, OtherFailures } from "./failure";
import { EventsCard } from "./events_card";
import { JobLine } from "./job_line";
import { Notices } from "./notices";
import { ProgressCard } from "./progress";
import { RankGrid } from "./rank_grid";
import { RankTable } from "./rank_table";
import { SavedCard, SaveStacks, StallCard } from "./stall";
import { WaitingCard } from "./waiting";

// The ranks of an earlier attempt, which the event stream does not have.
function useEarlierRanks(attempt: number | null): ReadonlyMap<number, Rank> | null {
  const [ranks, set_ranks] = useState<{ attempt: number; rows: ReadonlyMap<number, Rank> } | null>(
    null,
  );
  useEffect(() => {
    if (attempt === null) return;
    const stop = new AbortController();
    get_rows<{ ranks: Rank[] }>(api_url("/api/v1/ranks", { attempt }), stop.signal)
      .then(({ ranks: rows }) =>
        set_ranks({ attempt, rows: new Map(rows.map((row) => [row.rank, row])) }),
      )
      .catch(() => {});
    return () => stop.abort();
  }, [attempt]);
  return ranks && ranks.attempt === attempt ? ranks.rows : null;
}

const kNoRanks: ReadonlyMap<number, Rank> = new Map();

function choose_attempt(attempt: number, newest: number): void {
  const params = new URLSearchParams();
  if (attempt !== newest) params.set("attempt", String(attempt));
  navigate({ view: "overview", params }, { replace: true });
}

function AttemptPicker({ attempts, shown }: { attempts: readonly Attempt[]; shown: Attempt }) {
  const newest = attempts.at(-1)?.attempt ?? 0;
  if (attempts.length < 2) return null;
  return (
    <label class="picker">
      <span class="muted">of attempt</span>
      <select
        value={String(shown.attempt)}
        onChange={(event) => choose_attempt(Number(event.currentTarget.value), newest)}
      >
        {[...attempts].reverse().map((attempt) => (
          <option value={String(attempt.attempt)}>
            {attempt.attempt} ({attempt.attempt === newest ? "the last" : attempt.state})
          </option>
        ))}
      </select>
    </label>
  );
}

function RanksCard({ attempts, attempt }: { attempts: readonly Attempt[]; attempt: Attempt }) {
  const { nodes, ranks, samples, job } = model.value;
  const current = attempt.attempt === job?.attempt;
  const earlier = useEarlierRanks(current ? null : attempt.attempt);
  const shown = current ? ranks : (earlier ?? kNoRanks);
  const suspected = current ? (job?.stall?.suspects ?? "") : "";
  const suspects = useMemo(() => new Set(parse_ranks(suspected)), [suspected]);
  return (
    <section class="card ranks-card" aria-labelledby="ranks-title">
      <div class="card-head">
        <h2 id="ranks-title">
          {plural(attempt.world_size, "rank")}{" "}
          <span class="muted">on {plural(attempt.node_count, "node")}</span>
        </h2>
        {current && job && <SaveStacks job={job} />}
        <AttemptPicker attempts={attempts} shown={attempt} />
      </div>
      <RankGrid
        attempt={attempt}
        current={current}
        nodes={nodes}
        ranks={shown}
        samples={samples}
        suspects={suspects}
      />
      <details class="fold" open={attempt.world_size <= 16}>
        <summary>As a table</summary>
        <RankTable
          attempt={attempt}
          ranks={shown}
          samples={current ? samples : new Map()}
          suspects={suspects}
        />
      </details>
    </section>
  );
}

function Loading() {
  return (
    <p class="loading" role="status">
      {link.value.state === "lost"
        ? "The server does not answer yet."
        : "Loading the state of the run …"}
    </p>
  );
}

function Content({ job }: { job: Job }) {
  const { attempts, nodes } = model.value;
  const { params } = route.value;
  const last = attempts.at(-1);
  const wanted = params.has("attempt") ? Number(params.get("attempt")) : null;
  const shown = attempts.find((attempt) => attempt.attempt === wanted) ?? last;
  const others = attempts.filter((attempt) => attempt !== shown);
  const failure = shown?.failure;
  return (
    <>
      <Guard name="The job's line">
        <JobLine job={job} failure_shown={!!failure && shown === last} />
      </Guard>
      {shown && failure && (
        <Guard name="The failure">
          <FailureCard job={job} attempt={shown} failure={failure} focus={params.has("failure")} />
        </Guard>
      )}
      {job.stall && (
        <Guard name="The stall">
          <StallCard job={job} stall={job.stall} saved={last?.saved ?? []} />
        </Guard>
      )}
      {job.waiting && job.phase === "waiting" && (
        <WaitingCard job={job} waiting={job.waiting} nodes={nodes} />
      )}
      <Guard name="What needs attention">
        <Notices job={job} />
      </Guard>
      {shown && !failure && !job.stall && (
        <Guard name="What was saved">
          <SavedCard saved={shown.saved ?? []} />
        </Guard>
      )}
      {!failure && <OtherFailures job={job} attempts={others} shown={shown} />}
      {shown && (
        <Guard name="The ranks">
          <RanksCard attempts={attempts} attempt={shown} />
        </Guard>
      )}
      <Guard name="The progress">
        <ProgressCard job={job} current={shown === last} />
      </Guard>
      {failure && <OtherFailures job={job} attempts={others} shown={shown} />}
      <Guard name="The timeline">
        <EventsCard job={job} />
      </Guard>
    </>
  );
}

export function Overview() {
  const { job } = model.value;
  return (
    <main id="main" class="overview" tabIndex={-1}>
      {job ? <Content job={job} /> : <Loading />}
    </main>
  );
}
