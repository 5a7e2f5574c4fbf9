// SPDX-License-Identifier: Apache-2.0
// Writes the folder of a run that never was: of any size, and with text that means harm. What shows
// it is the real `muster view`.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const kStart_ms = Date.UTC(2026, 10, 29, 12);

export class RecordedRun {
  constructor(
    folder,
    {
      nodes,
      workers,
      host = (node) => `node-${String(node).padStart(3, "0")}`,
      program = "train.py",
    },
  ) {
    Object.assign(this, { folder, nodes, workers, host, program, lines: [], mono_us: 0 });
    this.world = nodes * workers;
    mkdirSync(folder, { recursive: true });
    this.add("job_started", {
      run_id: "recorded",
      host: host(0),
      program,
      command: ["muster", "--nnodes", String(nodes), program],
      log_dir: folder,
      world_size: this.world,
      local_world_size: workers,
      min_nodes: nodes,
      max_nodes: nodes,
      max_restarts: 3,
      pid: 1,
      started_by: "ada",
    });
    for (let node = 0; node < nodes; ++node)
      this.add("node_joined", {
        id: `id-${node}`,
        host: host(node),
        address: "",
        pid: 100 + node,
        workers,
        spare: false,
        log_dir: "",
      });
  }

  add(event, keys, after_us = 1_000) {
    this.mono_us += after_us;
    const time = new Date(kStart_ms + this.mono_us / 1_000).toISOString().replace(/Z$/, "000Z");
    this.lines.push(
      JSON.stringify({ seq: this.lines.length, time, mono_us: this.mono_us, event, ...keys }),
    );
  }

  begin(attempt, restarts = attempt) {
    const nodes = Array.from({ length: this.nodes }, (_, node) => ({
      node,
      host: this.host(node),
      first_rank: node * this.workers,
      workers: this.workers,
      id: `id-${node}`,
    }));
    this.add("attempt_started", {
      attempt,
      restart_count: restarts,
      node: 0,
      node_count: this.nodes,
      world_size: this.world,
      nodes,
      master_addr: "10.0.0.1",
      master_port: 29500,
    });
    for (let rank = 0; rank < this.world; ++rank)
      this.add(
        "worker_spawned",
        { attempt, rank, local_rank: rank % this.workers, pid: 10_000 + rank },
        50,
      );
  }

  exit(attempt, rank, wait_status) {
    const signal = wait_status & 0x7f;
    this.add(
      "worker_exited",
      {
        attempt,
        rank,
        local_rank: rank % this.workers,
        pid: 10_000 + rank,
        wait_status,
        max_rss_kib: 512_000 + rank,
        exit_code: signal ? 128 + signal : wait_status >> 8,
        signal,
      },
      50,
    );
  }

  // `rank` fails after some minutes of work, and muster stops the others.
  fail(
    attempt,
    rank,
    {
      message = "ZeroDivisionError (train.py:8)",
      excerpt = ["ZeroDivisionError: division by zero"],
      kind = "python_exception",
      ...more
    } = {},
  ) {
    this.mono_us += 200e6;
    this.exit(attempt, rank, 256);
    for (let other = 0; other < this.world; ++other) {
      if (other !== rank)
        this.add(
          "signal_sent",
          {
            attempt,
            rank: other,
            pid: 10_000 + other,
            signal: 15,
            to_group: false,
            reason: "failure",
          },
          5,
        );
    }
    for (let other = 0; other < this.world; ++other)
      if (other !== rank) this.exit(attempt, other, 15);
    const node = Math.floor(rank / this.workers);
    this.add("failure_found", {
      attempt,
      rank,
      local_rank: rank % this.workers,
      host: this.host(node),
      node,
      pid: 10_000 + rank,
      kind,
      signal: 0,
      exit_code: 1,
      message,
      excerpt,
      excerpt_source: "stderr",
      note: "",
      can_heal: true,
      ran_us: 200e6,
      time_us: kStart_ms * 1_000 + this.mono_us,
      stdout_log: "",
      stderr_log: "",
      ...more,
    });
    this.add("victims_found", {
      attempt,
      groups: [
        {
          ranks: `${rank > 0 ? `0-${rank - 1},` : ""}${rank + 1}-${this.world - 1}`,
          reason: "stopped by muster",
        },
      ],
    });
  }

  // Nothing moves for some minutes, and stacks are saved meanwhile.
  stall(attempt, { suspects = "1", waiting = "0,2", text = "rank 1 spins", ...saved } = {}) {
    const since_us = kStart_ms * 1_000 + this.mono_us;
    this.mono_us += 300e6;
    this.add("stall_found", { attempt, kind: "spinning", suspects, waiting, since_us, text });
    this.add("evidence_saved", {
      attempt,
      host: this.host(0),
      why: "stalled",
      folder: "/runs/recorded/attempt_0/stacks_0",
      groups: ["ranks 0,2: pthread_cond_wait", "rank 1: spin"],
      trouble: "",
      ...saved,
    });
    this.mono_us += 60e6;
    this.add("stall_over", { attempt, lasted_us: 360e6, how: "rank 1 wrote again" });
  }

  end(outcome, exit_code) {
    this.add("job_ended", { outcome, exit_code, why: "" });
  }

  write() {
    writeFileSync(join(this.folder, "events.jsonl"), `${this.lines.join("\n")}\n`);
    return this.folder;
  }
}
