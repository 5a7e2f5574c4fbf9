// SPDX-License-Identifier: Apache-2.0
// Only for messages.cc: the fields of what travels, as event_fields.h has those of the events.
#pragma once

#include "supervisor/job/event_fields.h"
#include "supervisor/rendezvous/messages.h"

namespace muster {

template <typename A>
void describe(A&& a, JobTerms& t) {
  a("min_nodes", t.min_nodes);
  a("max_nodes", t.max_nodes);
  a("max_restarts", t.max_restarts);
  a("restart_always", t.restart_always);
  a("agent_store", t.agent_store);
  a("failure_policy", t.failure_policy);
  a("same_failure_limit", t.same_failure_limit);
  a("restart_backoff", t.restart_backoff);
}

template <typename A>
void describe(A&& a, NodeFacts& f) {
  a("id", f.id);
  a("host", f.host);
  a("pid", f.pid);
  a("workers", f.workers);
  a("role", f.role);
  a("node_rank", f.node_rank);
  a("address", f.address);
  a("endpoint_host", f.endpoint_host);
  a("log_dir", f.log_dir);
  a("started_by", f.started_by);
  a("spare_port", f.spare_port);
  a("attempt", f.attempt);
  a("last_attempt", f.last_attempt);
  a("last_restart_count", f.last_restart_count);
  a("terms", f.terms);
}

template <typename A>
void describe(A&& a, Assignment& s) {
  a("attempt", s.attempt);
  a("restart_count", s.restart_count);
  a("node", s.node);
  a("node_count", s.node_count);
  a("first_rank", s.first_rank);
  a("world_size", s.world_size);
  a("role_first_rank", s.role_first_rank);
  a("role_world_size", s.role_world_size);
  a("master_addr", s.master_addr);
  a("master_port", s.master_port);
}

template <typename A>
void describe(A&& a, StopOrder& o) {
  a("attempt", o.attempt);
  a("signal", o.signal);
  a("reason", o.reason);
  a("kill", o.kill);
  a("why", o.why);
  a("hung", o.hung);
}

template <typename A>
void describe(A&& a, FailureNotice& n) {
  a("attempt", n.attempt);
  a("preliminary", n.preliminary);
}

template <typename A>
void describe(A&& a, NodeOutcome& o) {
  a("attempt", o.attempt);
  a("early", o.early);
  a("complete", o.complete);
  a("root", o.root);
  a("others", o.others);
  a("victims", o.victims);
  a("left_running", o.left_running);
  a("trouble", o.trouble);
  a("suspects", o.suspects);
  a("finished", o.finished);
  a("more_failed", o.more_failed);
  a("step", o.step);
}

template <typename A>
void describe(A&& a, AttemptVerdict& v) {
  a("attempt", v.attempt);
  a("root", v.root);
  a("others", v.others);
  a("victims", v.victims);
  a("restarts", v.restarts);
  a("restart_count", v.restart_count);
  a("collectives", v.collectives);
  a("no_restart", v.no_restart);
  a("delay_ms", v.delay_ms);
  a("excluded", v.excluded);
  a("early", v.early);
}

template <typename A>
void describe(A&& a, JobEnd& e) {
  a("outcome", e.outcome);
  a("exit_code", e.exit_code);
  a("why", e.why);
  a("kind", e.kind);
}

template <typename A>
void describe(A&& a, message::Hello& m) {
  a("version", m.version);
  a("run_id", m.run_id);
  a("nonce", m.nonce);
  a("has_token", m.has_token);
}

template <typename A>
void describe(A&& a, message::Join& m) {
  a("facts", m.facts);
  a("proof", m.proof);
  a("clock_offset_us", m.clock_offset_us);
}

template <typename A>
void describe(A&& a, message::StopRequest& m) {
  a("signal", m.signal);
  a("kill", m.kill);
}

// A header.
template <typename A>
void describe(A&& a, std::pair<std::string, std::string>& header) {
  a("name", header.first);
  a("value", header.second);
}

template <typename A>
void describe(A&& a, message::Answer& m) {
  a("id", m.id);
  a("status", m.status);
  a("headers", m.headers);
  a("length", m.length);
}

template <typename A>
void describe(A&& a, message::Request& m) {
  a("id", m.id);
  a("target", m.target);
  a("headers", m.headers);
  a("credit", m.credit);
}

template <typename A>
void describe(A&& a, message::Watch& m) {
  a("every_ms", m.every_ms);
  a("for_ms", m.for_ms);
}

template <typename A>
void describe(A&& a, message::RestartRequest& m) {
  a("who", m.who);
}

template <typename A>
void describe(A&& a, message::RestartRefused& m) {
  a("why", m.why);
}

template <typename A>
void describe(A&& a, message::EvidenceRequest& m) {
  a("why", m.why);
}

template <typename A>
void describe(A&& a, message::SaveEvidence& m) {
  a("attempt", m.attempt);
  a("why", m.why);
}

template <typename A>
void describe(A&&, message::Leave&) {}
template <typename A>
void describe(A&&, message::Goodbye&) {}

template <typename A>
void describe(A&& a, message::Challenge& m) {
  a("version", m.version);
  a("nonce", m.nonce);
  a("proof", m.proof);
  a("time_us", m.time_us);
}

template <typename A>
void describe(A&& a, message::Refuse& m) {
  a("reason", m.reason);
  a("final", m.final);
}

template <typename A>
void describe(A&& a, message::Welcome& m) {
  a("spare", m.spare);
  a("resumed", m.resumed);
  a("heartbeat_ms", m.heartbeat_ms);
  a("heartbeat_misses", m.heartbeat_misses);
}

}  // namespace muster
