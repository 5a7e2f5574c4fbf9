// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "loop/resolve.h"
#include "loop/timer.h"
#include "supervisor/rendezvous/endpoint_discovery.h"
#include "supervisor/rendezvous/meeting_file.h"

namespace muster {

// A file that all nodes see (c10d with store_type=file): who gets its lock hosts, at any free port,
// and writes down where. What a finished or killed run left there is taken over, of the same run id
// too. Owned by the Rendezvous; the lock is held for as long as this lives.
class FileDiscovery final : public Discovery {
 public:
  FileDiscovery(Loop& loop, const RendezvousPlan& plan, std::string run_id, ListenAt listen,
                Callbacks callbacks);
  ~FileDiscovery() override;

  void find() override;
  bool can_replace_coordinator() const override { return false; }

 private:
  // What the pool and this share; the pool may still be busy when this is gone.
  struct Work {
    Result<MeetingFile> opened{Error{}};
    Result<void> written;
    bool abandoned = false;  // by us; only the loop looks at it
  };

  void look();
  void looked(Work& work);
  void host_here(UniqueFd lock);
  void written(const Result<void>& result);
  void go_there(const MeetingNote& note);
  void name_resolved(MeetingNote note, const Result<std::vector<SocketAddress>>& addresses);
  void try_again(const std::string& why);
  void found(Found found);
  void failed(const Error& error);
  void abandon_work();
  void let_go();

  Loop& loop_;
  const std::string path_;
  const std::string local_addr_;
  const std::string run_id_;
  const ListenAt listen_;
  const Callbacks callbacks_;
  std::shared_ptr<UniqueFd> lock_;
  std::unique_ptr<StoreServer> store_;  // until the note is written
  std::string host_;                    // as the note says it
  std::shared_ptr<Work> work_;          // what the pool does for us now
  Owned<Lookup> lookup_;
  Owned<Timer> timer_;
  Milliseconds backoff_{0};
  std::string step_;  // told last
};

}  // namespace muster
