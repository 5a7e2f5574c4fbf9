// SPDX-License-Identifier: Apache-2.0
#include "supervisor/logs/worker_streams.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "supervisor/logs/terminal.h"

namespace muster {

namespace {

// Lets a worker go on writing while its last output is on the way to the disk. All pipes of a user
// share 64 MiB, so many workers get less each. Where the system allows less still, a pipe stays as
// it is.
constexpr size_t kPipeSize = 1024 * 1024;
constexpr size_t kLeastPipeSize = 64 * 1024;
constexpr size_t kAllPipes = 32 * 1024 * 1024;

size_t pipe_size(size_t workers) {
  return std::clamp(kAllPipes / (2 * std::max<size_t>(workers, 1)), kLeastPipeSize, kPipeSize);
}

constexpr Milliseconds kLeastGivingUp{1'000};

const char* stream_name(Stream stream) {
  return stream == Stream::kStdout ? "stdout" : "stderr";
}

}  // namespace

WorkerStreams::WorkerStreams(StreamWorld& world, Identity identity, const WorkerRoutes& routes)
    : world_(world), identity_(std::move(identity)), self_(std::make_shared<WorkerStreams*>(this)) {
  for (Stream stream : {Stream::kStdout, Stream::kStderr}) {
    One& it = one(stream);
    it.stream = stream;
    it.route = routes.of(stream);
    if (it.route.file) it.path = identity_.dir + "/" + stream_name(stream) + ".log";
  }
}

WorkerStreams::~WorkerStreams() {
  for (One& it : streams_) {
    if (it.source != 0) world_.console(it.stream).end(it.source);
  }
}

Result<std::array<StdioSource, 3>> WorkerStreams::open() {
  std::array<StdioSource, 3> sources;
  for (size_t i = 0; i < 2; ++i) {
    Result<StdioSource> source = open_one(streams_[i]);
    if (!source) {
      not_started();
      return source.error();
    }
    sources[i + 1] = std::move(*source);
  }
  sources[0] = open_stdin();
  return sources;
}

StdioSource WorkerStreams::open_stdin() {
  StdioSource source;
  source.kind = StdioSource::Kind::kNull;
  int in = world_.descriptors.in;
  if (world_.plan.options.stdin_rank != identity_.local_rank || in_background(in)) return source;
  source.kind = StdioSource::Kind::kInherit;
  One& out = one(Stream::kStdout);
  relay_wanted_ = world_.plan.options.pty && out.workers && isatty(in) == 1;
  if (relay_wanted_) {
    source.kind = StdioSource::Kind::kFd;
    source.fd = out.workers.get();
  }
  return source;
}

Result<StdioSource> WorkerStreams::open_one(One& it) {
  StdioSource source;
  if (!it.route.pipe) {
    source.kind = StdioSource::Kind::kFile;
    source.path = it.path;
    return source;
  }
  if (it.route.file && it.route.complete) {
    auto file = LogFile::create(it.path, 0);
    if (!file) return file.error();
    it.file = std::move(*file);
  } else if (it.route.file) {
    it.file = LogFile::create_later(it.path, world_.plan.options.log_limit);
  }
  if (it.file) it.file->keep_times(times_path(it.path));
  if (world_.plan.options.pty) {
    // One for each stream, so that the two stay apart.
    auto pty = open_pty(world_.descriptors.in);
    if (!pty) return pty.error();
    it.ours = std::move(pty->master);
    it.workers = std::move(pty->slave);
  } else if (auto opened = open_pipe(it); !opened) {
    return opened.error();
  }
  source.kind = StdioSource::Kind::kFd;
  source.fd = it.workers.get();
  return source;
}

Result<void> WorkerStreams::open_pipe(One& it) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return errno_error(errno, "make a pipe");
  it.ours.reset(ends[0]);
  it.workers.reset(ends[1]);
  fcntl(it.ours.get(), F_SETFL, O_NONBLOCK);
  fcntl(it.ours.get(), F_SETPIPE_SZ, static_cast<int>(pipe_size(world_.plan.workers.size())));
  return {};
}

void WorkerStreams::not_started() {
  relay_wanted_ = false;
  for (One& it : streams_) {
    it.ours.reset();
    it.workers.reset();
    it.file.reset();
  }
}

void WorkerStreams::started(int pid) {
  if (relay_wanted_) {
    relay_ = StdinRelay::start(world_.loop, world_.descriptors.in, one(Stream::kStdout).ours.get());
  }
  for (One& it : streams_) {
    it.workers.reset();
    if (it.route.pipe) start_one(it, pid);
  }
}

void WorkerStreams::start_one(One& it, int pid) {
  if (it.route.console) {
    it.source =
        world_.console(it.stream).add_source(identity_.rank, prefix_for(it, pid), it.route.raw);
  }
  FilterFile* filter = world_.filter(it.stream);
  if (it.route.filter && filter != nullptr) {
    it.filter = std::make_unique<LineFilter>(*filter, prefix_for(it, pid));
  }
  StreamReader::Hooks hooks;
  hooks.on_first_output = [this, stream = it.stream] {
    world_.callbacks.on_first_output(identity_.local_rank, stream);
  };
  hooks.on_read = [this, &it](size_t bytes) {
    arrived_.add(it.stream, bytes);
    it.on_their_way += bytes;
    if (keeps_order()) order_.push_back(it.stream);
    // Asked with each piece of output: whoever draws learns of a new size by its next drawing, and
    // the signal that tells of it goes to the front.
    if (world_.plan.options.pty) {
      follow_window_size(world_.descriptors.in, it.reader->descriptor());
    }
  };
  hooks.may_go_on = [this, &it] { return may_go_on(it); };
  hooks.may_deliver = [this, &it] { return may_deliver(it); };
  hooks.on_bytes = [this, &it](std::string_view bytes) { on_bytes(it, bytes); };
  hooks.on_file_error = [this, &it](const LogFile::Written& written) {
    on_file_error(it, written);
  };
  hooks.on_end = [this, &it] { on_end(it); };
  auto reader = StreamReader::start(world_.loop, world_.chunks, world_.gate, std::move(it.ours),
                                    std::move(it.file), std::move(hooks));
  if (reader) {
    it.reader = std::move(*reader);
  } else {
    world_.callbacks.on_trouble(reader.error().message);
  }
}

void WorkerStreams::ended(Milliseconds bound) {
  ended_ = true;
  bound_ = Timer::start(world_.loop, bound, [this, bound] {
    // A descendant keeps a pipe open, or the disk is slow.
    for (One& it : streams_) {
      if (it.reader) it.reader->end_soon();
    }
    bound_ = Timer::start(world_.loop, std::max(bound, kLeastGivingUp), [this] {
      for (One& it : streams_) {
        if (!it.done()) {
          world_.callbacks.on_trouble("writing " + it.path +
                                      " does not end; what it lacks is lost");
        }
      }
      report_drained();
    });
  });
  check_drained();
}

void WorkerStreams::resume() {
  for (One& it : streams_) {
    if (it.reader) it.reader->resume();
  }
}

bool WorkerStreams::may_go_on(const One& it) {
  bool may = sinks_have_room(it);
  if (!may) world_.paused = true;
  return may;
}

bool WorkerStreams::sinks_have_room(const One& it) {
  if (it.source != 0 && world_.console(it.stream).wants_pause()) return false;
  return !it.filter || !world_.filter(it.stream)->wants_pause();
}

bool WorkerStreams::may_deliver(const One& it) {
  return may_go_on(it) && (!keeps_order() || order_.front() == it.stream);
}

void WorkerStreams::on_bytes(One& it, std::string_view bytes) {
  it.tail.append(bytes);
  it.on_their_way -= bytes.size();
  it.last_bytes = Clock::now();
  if (it.filter) it.filter->feed(bytes);
  if (it.source != 0) world_.console(it.stream).feed(it.source, bytes);
  if (!keeps_order()) return;
  order_.pop_front();
  if (order_.empty() || order_.front() == it.stream) return;
  One& other = one(order_.front());
  if (other.reader) other.reader->resume();
}

void WorkerStreams::on_file_error(One& it, const LogFile::Written& written) {
  it.lost += written.lost;
  if (it.error == written.error) return;  // said before
  it.error = written.error;
  world_.callbacks.on_trouble("write " + it.path + ": " + std::strerror(written.error) +
                              "; output is being lost from this file, " +
                              std::to_string(written.lost) + " bytes so far");
}

void WorkerStreams::on_end(One& it) {
  if (it.stream == Stream::kStdout) relay_.reset();
  if (it.filter) it.filter->end();
  if (it.source != 0) world_.console(it.stream).end(it.source);
  it.source = 0;
  if (it.lost > 0) {
    world_.callbacks.on_trouble(it.path + " lacks " + std::to_string(it.lost) +
                                " bytes: " + std::strerror(it.error));
  }
  if (closed() && world_.callbacks.on_closed) tell(world_.callbacks.on_closed);
  check_drained();
}

void WorkerStreams::check_drained() {
  if (ended_ && closed()) report_drained();
}

void WorkerStreams::report_drained() {
  if (drained_) return;
  drained_ = true;
  bound_.reset();
  tell(world_.callbacks.on_drained);
}

// Posted, because the one who is told may drop us.
void WorkerStreams::tell(const std::function<void(int local_rank)>& whom) {
  world_.loop.post([weak = std::weak_ptr<WorkerStreams*>(self_), &whom] {
    auto alive = weak.lock();
    if (alive) whom((*alive)->identity_.local_rank);
  });
}

Prefix WorkerStreams::prefix_for(const One& it, int pid) const {
  return Prefix(it.route.prefix, {{"role_name", world_.plan.options.role},
                                  {"rank", std::to_string(identity_.rank)},
                                  {"local_rank", std::to_string(identity_.local_rank)},
                                  {"hostname", world_.plan.host},
                                  {"pid", std::to_string(pid)},
                                  {"attempt", std::to_string(identity_.attempt)},
                                  {"stream", stream_name(it.stream)}});
}

JobLogs::Recent WorkerStreams::recent(Stream stream, size_t count) const {
  return {one(stream).last_bytes, one(stream).tail.last(count)};
}

std::string WorkerStreams::tail(Stream stream) const {
  return one(stream).tail.text();
}

std::vector<StreamLine> WorkerStreams::last_lines(size_t count) const {
  const One& out = one(Stream::kStdout);
  const One& err = one(Stream::kStderr);
  const std::string out_tail = out.tail.text();
  const std::string err_tail = err.tail.text();
  return lines_in_order({out_tail, out.on_their_way}, {err_tail, err.on_their_way},
                        arrived_.pieces(), count);
}

std::string WorkerStreams::log_file(Stream stream) const {
  const One& it = one(stream);
  // A stream that nobody asked for and that said nothing has no file.
  if (it.route.pipe && !it.route.complete && it.tail.empty()) return "";
  return it.path;
}

}  // namespace muster
