// SPDX-License-Identifier: Apache-2.0
// The job in one line, what else is known of it, and the two things that may be done to it.
import { useState } from "preact/hooks";
import { ApiError, post, type Job } from "../api";
import { announce, copy_text } from "../clipboard";
import { Dialog } from "../dialog";
import { clock_text, date_time_text, plural, shell_text } from "../format";
import { model } from "../live";
import { job_end_us, now_us } from "../now";
import { job_word, kToneMarks } from "../states";

type Action = "stop" | "kill" | "restart";

const kActions: Record<
  Action,
  { url: string; title: string; button: string; what: (job: Job) => string }
> = {
  stop: {
    url: "/api/v1/stop",
    title: "Stop the job?",
    button: "Stop the job",
    what: (job) =>
      `${plural(job.world_size, "worker")} will be asked to end, and killed if they have not ended in time. The run ends as stopped.`,
  },
  kill: {
    url: "/api/v1/stop?kill=1",
    title: "Kill the workers now?",
    button: "Kill now",
    what: () =>
      "The job is stopping already. Workers that have not ended yet get SIGKILL, without time to save anything.",
  },
  restart: {
    url: "/api/v1/restart",
    title: "Restart the workers?",
    button: "Restart",
    what: (job) =>
      `${plural(job.world_size, "worker")} will be stopped and started anew as attempt ${job.attempt + 1}. What was not saved in a checkpoint is lost.`,
  },
};

function Confirm({ action, job, on_close }: { action: Action; job: Job; on_close: () => void }) {
  const [error, set_error] = useState<ApiError | null>(null);
  const [busy, set_busy] = useState(false);
  const { url, title, button, what } = kActions[action];
  const act = async () => {
    set_busy(true);
    try {
      await post(url);
      announce(action === "restart" ? "Restarting" : "Stopping");
      on_close();
    } catch (thrown) {
      set_error(
        thrown instanceof ApiError ? thrown : new ApiError(0, "the server does not answer"),
      );
      set_busy(false);
    }
  };
  return (
    <Dialog title={title} on_close={on_close}>
      <p>{what(job)}</p>
      {error && (
        <p class="error" role="alert">
          <span class="foreign">{error.message}</span>{" "}
          <span class="foreign muted">{error.hint}</span>
        </p>
      )}
      <p class="actions">
        <button type="button" class="danger" disabled={busy} onClick={() => void act()}>
          {button}
        </button>
        <button type="button" autofocus onClick={on_close}>
          Cancel
        </button>
      </p>
    </Dialog>
  );
}

function Controls({ job }: { job: Job }) {
  const [asking, set_asking] = useState<Action | null>(null);
  if (!job.live || job.phase === "ended") return null;
  const stopping = job.phase === "stopping";
  return (
    <div class="controls">
      {(job.phase === "running" || job.phase === "stalled") && (
        <button type="button" onClick={() => set_asking("restart")}>
          Restart …
        </button>
      )}
      <button type="button" class="danger" onClick={() => set_asking(stopping ? "kill" : "stop")}>
        {stopping ? "Kill …" : "Stop …"}
      </button>
      {asking && <Confirm action={asking} job={job} on_close={() => set_asking(null)} />}
    </div>
  );
}

function Fact({ name, children }: { name: string; children: preact.ComponentChildren }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

function nodes_text(job: Job, here: number): string {
  const count = here || 1;
  const range =
    job.min_nodes === job.max_nodes ? `${job.max_nodes}` : `${job.min_nodes}–${job.max_nodes}`;
  return job.max_nodes > 1 ? `${count} of ${range}` : `${count}`;
}

function Details({ job }: { job: Job }) {
  const command = shell_text(job.command);
  return (
    <details class="fold job-details">
      <summary>Command, folder and addresses</summary>
      <dl>
        <Fact name="Command">
          <code class="foreign">{command}</code>{" "}
          <button
            type="button"
            class="quiet small"
            onClick={() => void copy_text(command, "The command was")}
          >
            Copy
          </button>
        </Fact>
        {job.log_dir && (
          <Fact name="Run folder">
            <code class="foreign">{job.log_dir}</code> <span class="muted">on</span>{" "}
            <span class="foreign">{job.host}</span>{" "}
            <button
              type="button"
              class="quiet small"
              onClick={() => void copy_text(job.log_dir, "The folder was")}
            >
              Copy
            </button>
          </Fact>
        )}
        <Fact name="Started">
          {date_time_text(job.started_us)} <span class="muted">by</span>{" "}
          <span class="foreign">{job.started_by}</span>
        </Fact>
        {!!job.ended_us && <Fact name="Ended">{date_time_text(job.ended_us)}</Fact>}
        {job.master_addr && (
          <Fact name="Store">
            <code class="foreign">
              {job.master_addr}:{job.master_port}
            </code>
          </Fact>
        )}
        <Fact name="muster">
          <code class="foreign">{job.version}</code>, pid {job.pid}, run{" "}
          <code class="foreign">{job.run_id}</code>
        </Fact>
      </dl>
    </details>
  );
}

export function JobLine({ job, failure_shown }: { job: Job; failure_shown: boolean }) {
  const { nodes, events, attempts } = model.value;
  const { word, tone } = job_word(job);
  const last_event_us = Date.parse(events.at(-1)?.time ?? "") * 1_000 || 0;
  const here =
    nodes.filter((node) => node.here && !node.spare).length || (attempts.at(-1)?.node_count ?? 0);
  const elapsed = (job_end_us(job, last_event_us) - job.started_us) / 1e6;
  return (
    <section class="job" aria-label="Job">
      <div class="job-line">
        <h1 class={`state ${tone}`}>
          <span aria-hidden="true">{kToneMarks[tone]}</span>
          {word}
        </h1>
        <dl class="facts-line">
          <Fact name="elapsed">
            <span class="clock">{clock_text(elapsed)}</span>
          </Fact>
          <Fact name={job.world_size === 1 ? "worker" : "workers"}>{job.world_size ? job.world_size.toLocaleString("en") : "–"}</Fact>
          <Fact name={job.max_nodes > 1 || here > 1 ? "nodes" : "node"}>{nodes_text(job, here)}</Fact>
          <Fact name="attempt">{attempts.length ? job.attempt : "–"}</Fact>
          <Fact name="restarts">
            {job.restarts_used} of {job.max_restarts}
          </Fact>
          {job.restart_due_us != null && (
            <Fact name="next attempt in">
              <span class="clock">{clock_text((job.restart_due_us - now_us()) / 1e6)}</span>
            </Fact>
          )}
          {job.exit_code != null && job.phase === "ended" && (
            <Fact name="exit code">{job.exit_code}</Fact>
          )}
        </dl>
        <Controls job={job} />
      </div>
      <p class={`foreign summary ${failure_shown ? "hidden-text" : ""}`} role="status">
        {job.summary}
      </p>
      {job.why && job.why !== job.summary && <p class="foreign">{job.why}</p>}
      <Details job={job} />
    </section>
  );
}
