// SPDX-License-Identifier: Apache-2.0
#include <muster/comm/world.h>

#include "nccl/join/world_impl.h"

namespace muster::comm {

World::World(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

Result<World> World::join(const JoinOptions& options) {
  Result<std::shared_ptr<Impl>> impl = Impl::join(options);
  if (!impl) return impl.error();
  return World(std::move(*impl));
}

int World::rank() const {
  return impl_->place().rank;
}

int World::size() const {
  return impl_->place().size;
}

int World::local_rank() const {
  return impl_->place().local_rank;
}

int World::local_size() const {
  return impl_->place().local_size;
}

int World::attempt() const {
  return impl_->place().attempt;
}

const std::string& World::run_id() const {
  return impl_->place().run_id;
}

Result<Communicator> World::communicator(Backend backend, CommunicatorOptions options) {
  return impl_->communicator(backend, std::move(options));
}

Result<Communicator> World::grow_into(Backend backend, const std::string& name,
                                      CommunicatorOptions options) {
  return impl_->grow_into(backend, name, std::move(options));
}

Result<void> World::set(std::string_view key, std::string_view value) {
  return impl_->set(key, value);
}

Result<std::string> World::get(std::string_view key, Duration timeout) {
  return impl_->get(key, timeout);
}

Result<int64_t> World::add(std::string_view key, int64_t delta) {
  return impl_->add(key, delta);
}

Result<bool> World::erase(std::string_view key) {
  return impl_->erase(key);
}

Result<void> World::barrier(std::string_view name, Duration timeout) {
  return impl_->barrier(name, timeout);
}

Result<void> World::leave(Duration timeout) {
  return impl_->leave(timeout);
}

}  // namespace muster::comm
