// SPDX-License-Identifier: Apache-2.0
// A job that makes no progress: since when, who differs from the others, and where the stacks of
// its running workers lie.
import { useState } from "preact/hooks";
import { ApiError, post, type Job, type Saved, type Stall } from "../api";
import { announce, copy_text } from "../clipboard";
import { clock_text, date_time_text, plural } from "../format";
import { now_us } from "../now";
import { Ranks } from "./ranks_link";

const kSavedShown = 8;
const kSavedTitle = "Stacks of the running workers";

function SavedItem({ saved }: { saved: Saved }) {
  return (
    <li>
      <code class="foreign">{saved.folder}</code> <span class="muted">on</span>{" "}
      <span class="foreign">{saved.host}</span>{" "}
      <button
        type="button"
        class="quiet small"
        aria-label={`Copy the folder's name on ${saved.host}`}
        onClick={() => void copy_text(saved.folder, "The folder was")}
      >
        Copy
      </button>
      <span class="foreign muted"> {saved.why}</span>
      {saved.groups.length > 0 && (
        <ul class="stack-groups">
          {saved.groups.map((group) => (
            <li class="foreign mono">{group}</li>
          ))}
        </ul>
      )}
      {saved.trouble && <p class="foreign muted">{saved.trouble}</p>}
    </li>
  );
}

// The newest first.
function SavedItems({ saved }: { saved: readonly Saved[] }) {
  return (
    <>
      <ul aria-label="Saved evidence">
        {saved
          .slice(-kSavedShown)
          .reverse()
          .map((one) => (
            <SavedItem saved={one} />
          ))}
      </ul>
      {saved.length > kSavedShown && (
        <p class="muted">and {plural(saved.length - kSavedShown, "earlier folder")}</p>
      )}
    </>
  );
}

// Has every node save where its workers are; takes seconds, and costs the workers nothing.
export function SaveStacks({ job }: { job: Job }) {
  const [busy, set_busy] = useState(false);
  if (!job.live || (job.phase !== "running" && job.phase !== "stalled")) return null;
  const save = async () => {
    set_busy(true);
    try {
      await post("/api/v1/dump");
      announce("The stacks are saved");
    } catch (error) {
      announce(error instanceof ApiError ? error.message : "The server does not answer");
    }
    set_busy(false);
  };
  return (
    <button type="button" class="small" disabled={busy} onClick={() => void save()}>
      {busy ? "Saving …" : "Save stacks"}
    </button>
  );
}

// Within a card about something else.
export function SavedList({ saved }: { saved: readonly Saved[] }) {
  if (!saved.length) return null;
  return (
    <div class="saved">
      <h3>{kSavedTitle}</h3>
      <SavedItems saved={saved} />
    </div>
  );
}

export function SavedCard({ saved }: { saved: readonly Saved[] }) {
  if (!saved.length) return null;
  return (
    <section class="card saved" aria-labelledby="saved-title">
      <h2 id="saved-title">{kSavedTitle}</h2>
      <SavedItems saved={saved} />
    </section>
  );
}

// What ticks is not announced.
function StalledFor({ stall }: { stall: Stall }) {
  return (
    <p class="time-left">
      <span class="value">{clock_text((now_us() - stall.since_us) / 1e6)}</span>
      <span class="muted">without a sign of progress, since {date_time_text(stall.since_us)}</span>
    </p>
  );
}

export function StallCard({
  job,
  stall,
  saved,
}: {
  job: Job;
  stall: Stall;
  saved: readonly Saved[];
}) {
  return (
    <section class="card stall" aria-labelledby="stall-title">
      <h2 id="stall-title">
        <span class="badge failed" aria-hidden="true">
          !
        </span>
        <span>
          The job makes no progress
          <span class="message foreign" role="status">
            {stall.text}
          </span>
        </span>
      </h2>
      <StalledFor stall={stall} />
      <dl class="stall-ranks">
        {stall.suspects && (
          <div>
            <dt>Look at</dt>
            <dd>
              <Ranks job={job} ranks={stall.suspects} />
            </dd>
          </div>
        )}
        {stall.waiting && (
          <div>
            <dt>Only waiting</dt>
            <dd>
              <Ranks job={job} ranks={stall.waiting} />
            </dd>
          </div>
        )}
      </dl>
      {stall.hint && (
        <p class="hint">
          <strong>Hint</strong> <span class="foreign">{stall.hint}</span>
        </p>
      )}
      <SavedList saved={saved} />
    </section>
  );
}
