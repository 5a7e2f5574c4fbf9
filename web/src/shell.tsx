// SPDX-License-Identifier: Apache-2.0
// What frames each view: the run's name, the views, how the connection is, and what is announced.
import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import type { Job } from "./api";
import { copy_text, notice } from "./clipboard";
import { base_name, clock_text, shell_text, short_id } from "./format";
import { help_open } from "./help";
import { connect, link, model, type LinkState as LinkStateName } from "./live";
import { now_ms } from "./now";
import { href, logs_route, overview_route, route, type Route, type ViewName } from "./router";
import { job_word, kToneMarks, type Tone } from "./states";
import { is_dark, toggle_theme } from "./theme";

function Tab({ to, children }: { to: Route; children: ComponentChildren }) {
  const here: ViewName = route.value.view;
  return (
    <a href={href(to)} aria-current={here === to.view ? "page" : undefined}>
      {children}
    </a>
  );
}

const kIcons: Partial<Record<Tone, string>> = {
  failed: "/icon-failed.svg",
  done: "/icon-done.svg",
  waiting: "/icon-waiting.svg",
};

// The tab's own title and picture tell how the job is, among many tabs.
function useTabTitle(): void {
  const { job } = model.value;
  const state = link.value.state;
  const { word, tone } = job ? job_word(job) : { word: "", tone: "quiet" as Tone };
  const title = job
    ? `${kToneMarks[tone]} ${state === "lost" && job.phase !== "ended" ? "no contact" : word} · ${base_name(job.program)} · muster`
    : "muster";
  useEffect(() => {
    document.title = title;
    document.querySelector("link[rel=icon]")?.setAttribute("href", kIcons[tone] ?? "/icon.svg");
  }, [title, tone]);
}

// The page is as old as the last contact, which must not be taken for a calm job.
function LinkBar() {
  const { state } = link.value;
  const { job } = model.value;
  if (state !== "lost") return null;
  return job?.phase === "ended" ? <EndedBar job={job} /> : <LostBar known={job !== null} />;
}

function LostBar({ known }: { known: boolean }) {
  const { last_contact, retry_at } = link.value;
  const since =
    last_contact === null ? "" : ` ${clock_text((now_ms.value - last_contact) / 1_000)} ago`;
  const wait = retry_at === null ? 0 : Math.max(0, Math.ceil((retry_at - now_ms.value) / 1_000));
  return (
    <div class="link-bar" role="region" aria-label="Connection">
      <p role="status">
        <strong>The server does not answer.</strong> {known ? "The page keeps what it has." : ""}
      </p>
      {/* What ticks is not announced. */}
      <p class="muted">
        {last_contact !== null && `Last contact${since}. `}
        {wait > 0 ? `Next try in ${wait} s.` : "Trying …"}
      </p>
      <button type="button" onClick={connect}>
        Try now
      </button>
    </div>
  );
}

// A muster that has ended serves nothing any more, its logs neither.
function EndedBar({ job }: { job: Job }) {
  const command = shell_text(["muster", "view", job.log_dir]);
  return (
    <div class="link-bar calm" role="region" aria-label="Connection">
      <p role="status">
        <strong>muster has ended.</strong> The page keeps what it has.
      </p>
      {job.log_dir && (
        <p>
          <span class="muted">The run and its logs:</span> <code class="foreign">{command}</code>{" "}
          <button type="button" onClick={() => void copy_text(command, "The command was")}>
            Copy
          </button>
        </p>
      )}
    </div>
  );
}

function LinkState() {
  const { state } = link.value;
  const { job } = model.value;
  const texts: Record<LinkStateName, string> = {
    connecting: "connecting",
    lost: "no contact",
    open: job && !job.live ? "from files" : "live",
  };
  const ended = job?.live && job.phase === "ended";
  return (
    <span class={`link-state ${ended ? "ended" : state}`}>{ended ? "ended" : texts[state]}</span>
  );
}

export function Shell({ children }: { children: ComponentChildren }) {
  const { job } = model.value;
  useTabTitle();
  return (
    <>
      <a
        class="skip"
        href="#main"
        onClick={(event) => {
          event.preventDefault();
          document.querySelector<HTMLElement>("main")?.focus();
        }}
      >
        To the content
      </a>
      <header class="top">
        <a class="mark" href={href(overview_route)} aria-label="muster: overview">
          <svg viewBox="0 0 16 16" width="18" height="18" aria-hidden="true">
            <path d="M2.5 13V3.5L5.3 8 8 3.5 10.7 8l2.8-4.5V13" />
          </svg>
        </a>
        <span class="run">
          <span class="foreign program" title={job?.program}>
            {job ? base_name(job.program) : "muster"}
          </span>
          <span class="foreign muted run-id" title={job ? `run ${job.run_id}` : undefined}>
            {job && short_id(job.run_id)}
          </span>
        </span>
        <nav class="tabs" aria-label="Views">
          <Tab to={overview_route}>Overview</Tab>
          <Tab to={logs_route({ attempt: job?.attempt ?? 0, ranks: 0 })}>Logs</Tab>
          <Tab to={{ view: "search", params: new URLSearchParams() }}>Search</Tab>
        </nav>
        <LinkState />
        <button
          type="button"
          class="quiet icon"
          onClick={toggle_theme}
          aria-label={is_dark.value ? "Light colours" : "Dark colours"}
          title={`${is_dark.value ? "Light" : "Dark"} (g t)`}
        >
          <svg viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
            <circle cx="8" cy="8" r="5.5" />
            <path class="fill" d="M8 2.5a5.5 5.5 0 0 1 0 11z" />
          </svg>
        </button>
        <button
          type="button"
          class="quiet icon"
          aria-label="Keys"
          title="Keys (?)"
          onClick={() => (help_open.value = true)}
        >
          ?
        </button>
      </header>
      {children}
      <LinkBar />
      <div class={`toast ${notice.value ? "shown" : ""}`} role="status">
        {notice.value}
      </div>
    </>
  );
}
