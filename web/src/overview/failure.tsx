// SPDX-License-Identifier: Apache-2.0
// What went wrong: who failed first, why, its last words, what to do, and who only fell with it.
import { useEffect, useRef, useState } from "preact/hooks";
import { api_url, type Attempt, type Failure, type Job, type StreamName } from "../api";
import { copy_text } from "../clipboard";
import { date_time_text, plural } from "../format";
import { href, logs_route, type Route } from "../router";
import { Ranks } from "./ranks_link";
import { SavedList } from "./stall";
import { count_ranks, failure_as_text, headline, how_it_ended } from "./failure_text";

interface Props {
  job: Job;
  attempt: Attempt | undefined;
  failure: Failure;
  root: boolean; // the cause, as against an independent failure beside it
}

// The stream that the excerpt is of, so that the log opens where the words are.
function best_stream(failure: Failure): StreamName {
  if (failure.excerpt_source === "stdout") return "stdout";
  return failure.stderr_log || failure.stderr_url ? "stderr" : "stdout";
}

function failure_route(failure: Failure): Route {
  const params = new URLSearchParams({
    attempt: String(failure.attempt),
    failure: String(failure.rank),
  });
  return { view: "overview", params };
}

function log_route(failure: Failure): Route {
  return logs_route({
    attempt: failure.attempt,
    ranks: failure.rank,
    streams: best_stream(failure),
    offset: "end",
  });
}

function Actions({ job, attempt, failure }: Omit<Props, "root">) {
  const link = `${location.origin}${location.pathname}${href(failure_route(failure))}`;
  return (
    <p class="actions">
      {failure.rank >= 0 && (
        <a class="button primary" href={href(log_route(failure))}>
          Open its log at the end
        </a>
      )}
      <button
        type="button"
        onClick={() => void copy_text(failure_as_text(job, attempt, failure), "The failure was")}
      >
        Copy as text
      </button>
      <button type="button" onClick={() => void copy_text(link, "The link was")}>
        Copy link
      </button>
      {failure.rank >= 0 && (
        <a
          class="button"
          download
          href={api_url("/api/v1/download", { attempt: failure.attempt, ranks: failure.rank })}
        >
          Download its logs
        </a>
      )}
    </p>
  );
}

// The line that proves it, where the last lines do not have it.
function ShownBy({ failure }: { failure: Failure }) {
  if (!failure.line || failure.excerpt.includes(failure.line)) return null;
  const name = `The line that shows it${failure.line_source ? `, from the ${failure.line_source}` : ""}`;
  return (
    <figure class="excerpt">
      <figcaption class="muted foreign">{name}</figcaption>
      <pre tabIndex={0} role="group" aria-label={name}>
        <div class="foreign shows">{failure.line}</div>
      </pre>
    </figure>
  );
}

function Evidence({ failure }: { failure: Failure }) {
  const evidence = failure.evidence ?? [];
  if (!evidence.length) return null;
  return (
    <div class="evidence">
      <h3>What else was found</h3>
      <ul>
        {evidence.map((line) => (
          <li class="foreign">{line}</li>
        ))}
      </ul>
    </div>
  );
}

// A rank that tells what another's failure did to it.
function Blamed({ job, failure }: { job: Job; failure: Failure }) {
  if (!failure.victim) return null;
  return (
    <p class="blamed">
      It shows what another's failure does to a rank{" "}
      {failure.blames ? (
        <>
          and names <Ranks job={job} ranks={failure.blames} attempt={failure.attempt} />.
        </>
      ) : (
        "and does not tell whose."
      )}
    </p>
  );
}

// What shows it, else the last line: of a traceback the exception, of other output what it said last.
function Excerpt({ failure }: { failure: Failure }) {
  if (!failure.excerpt.length) return null;
  const found = failure.line ? failure.excerpt.lastIndexOf(failure.line) : -1;
  const shows = found >= 0 ? found : failure.line ? -1 : failure.excerpt.length - 1;
  const name =
    failure.excerpt_source === "error file"
      ? "From its error file"
      : `The end of its ${failure.excerpt_source || "output"}`;
  return (
    <figure class="excerpt">
      <figcaption class="muted">{name}</figcaption>
      <pre tabIndex={0} role="group" aria-label={name}>
        {failure.excerpt.map((line, i) => (
          <div class={`foreign ${i === shows ? "shows" : ""}`}>
            {line || " "}
          </div>
        ))}
      </pre>
    </figure>
  );
}

function Victims({ attempt }: { attempt: Attempt | undefined }) {
  const groups = attempt?.victims ?? [];
  if (!groups.length) return null;
  return (
    <details class="fold">
      <summary>{plural(count_ranks(groups), "other rank")} only fell with it</summary>
      <ul>
        {groups.map((group) => (
          <li>
            <span class="mono foreign">{group.ranks}</span>{" "}
            <span class="foreign muted">{group.reason}</span>
          </li>
        ))}
      </ul>
    </details>
  );
}

// What the workers were doing when the attempt was ended.
export function Operations({ attempt }: { attempt: Attempt | undefined }) {
  const found = attempt?.collectives ?? [];
  if (!found.length) return null;
  return (
    <ul class="operations" aria-label="What the workers were doing">
      {found.map((one) => (
        <li class="foreign">{one.text}</li>
      ))}
    </ul>
  );
}

export function FailureBody({ job, attempt, failure, root }: Props) {
  const facts = [
    failure.pid ? `pid ${failure.pid}` : "",
    `attempt ${failure.attempt}`,
    how_it_ended(failure),
    failure.time_us ? date_time_text(failure.time_us) : "",
    failure.can_heal ? "" : "a restart cannot heal it",
  ].filter(Boolean);
  return (
    <>
      <p class="muted facts">
        <span class="foreign mono">{failure.kind}</span>
        {facts.map((fact) => (
          <span class="foreign"> · {fact}</span>
        ))}
      </p>
      {failure.reason && failure.reason !== failure.message && (
        <p class="foreign reason">{failure.reason}</p>
      )}
      <Blamed job={job} failure={failure} />
      <ShownBy failure={failure} />
      <Excerpt failure={failure} />
      <Evidence failure={failure} />
      {failure.hint && (
        <p class="hint">
          <strong>Hint</strong> <span class="foreign">{failure.hint}</span>
        </p>
      )}
      {failure.note && <p class="foreign muted">{failure.note}</p>}
      <Actions job={job} attempt={attempt} failure={failure} />
      {root && <Operations attempt={attempt} />}
      {root && <Victims attempt={attempt} />}
      {root && <SavedList saved={attempt?.saved ?? []} />}
    </>
  );
}

// The attempt's failure in full, and the independent ones beside it folded.
export function FailureCard({
  job,
  attempt,
  failure,
  focus,
}: {
  job: Job;
  attempt: Attempt;
  failure: Failure;
  focus: boolean;
}) {
  const section = useRef<HTMLElement>(null);
  useEffect(() => {
    if (focus) section.current?.scrollIntoView({ block: "start" });
  }, [focus]);
  const others = attempt.other_failures;
  return (
    <section ref={section} class="card failure" aria-labelledby="failure-title">
      <h2 id="failure-title">
        <span class="badge failed" aria-hidden="true">
          ✕
        </span>
        <span>
          <span class="foreign">{headline(failure)}</span>
          <span class="foreign message">{failure.message}</span>
        </span>
      </h2>
      <FailureBody job={job} attempt={attempt} failure={failure} root />
      {others.length > 0 && (
        <div class="others">
          <h3>{plural(others.length, "independent failure")} in the same attempt</h3>
          {others.map((other) => (
            <FoldedFailure job={job} attempt={attempt} failure={other} />
          ))}
        </div>
      )}
    </section>
  );
}

export function FoldedFailure({
  job,
  attempt,
  failure,
}: {
  job: Job;
  attempt: Attempt | undefined;
  failure: Failure;
}) {
  return (
    <details class="fold failure-fold">
      <summary>
        <span class="mark-failed" aria-hidden="true">
          ✕
        </span>{" "}
        <span class="muted">attempt {failure.attempt}: </span>
        <span class="foreign">{headline(failure)}</span>{" "}
        <span class="foreign muted">· {failure.message}</span>
        {failure.victim && <span class="muted"> · a victim</span>}
      </summary>
      <div class="fold-body">
        <FailureBody
          job={job}
          attempt={attempt}
          failure={failure}
          root={attempt?.failure === failure}
        />
      </div>
    </details>
  );
}

const kFailuresShown = 3;

// The failures of other attempts than the one that is shown, the newest first.
export function OtherFailures({
  job,
  attempts,
  shown,
}: {
  job: Job;
  attempts: readonly Attempt[];
  shown: Attempt | undefined;
}) {
  const [all, set_all] = useState(false);
  const failed = attempts.filter((attempt) => attempt.failure).reverse();
  if (!failed.length) return null;
  const earlier = failed.every((attempt) => !shown || attempt.attempt < shown.attempt);
  return (
    <section class="card earlier" aria-labelledby="earlier-title">
      <h2 id="earlier-title">
        {plural(failed.length, earlier ? "earlier attempt" : "other attempt")} failed
      </h2>
      {(all ? failed : failed.slice(0, kFailuresShown)).flatMap((attempt) =>
        [attempt.failure, ...attempt.other_failures].map(
          (failure) =>
            failure && (
              <FoldedFailure
                key={`${attempt.attempt}.${failure.rank}`}
                job={job}
                attempt={attempt}
                failure={failure}
              />
            ),
        ),
      )}
      {!all && failed.length > kFailuresShown && (
        <p>
          <button type="button" onClick={() => set_all(true)}>
            {failed.length - kFailuresShown} more
          </button>
        </p>
      )}
    </section>
  );
}
