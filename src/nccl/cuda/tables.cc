// SPDX-License-Identifier: Apache-2.0
#include "nccl/cuda/tables.h"

#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <vector>

#include "nccl/cuda/warnings.h"

namespace muster::comm::detail {
namespace {

// In order of preference: the one of the headers, then what else a machine may have. All functions
// that are used have had the same signature since the oldest of them.
constexpr int kCudaMajors[] = {CUDART_VERSION / 1000, 13, 12, 11};

std::atomic<pid_t> opened_in = 0;
std::atomic<bool> exiting = false;

Error unavailable(std::string message) {
  return Error{.code = ErrorCode::kUnavailable, .message = std::move(message)};
}

class Library {
 public:
  static Result<Library> open(const char* variable, std::vector<std::string> names) {
    if (const char* path = std::getenv(variable); path != nullptr && *path != '\0') {
      names.assign(1, path);
    }
    std::string why;
    for (const std::string& name : names) {
      if (void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) return Library(handle, name);
      // The first is the one to have; what is said of the others does not help.
      if (why.empty()) why = dlerror();
    }
    return unavailable(why + " (" + variable + " may name another file)");
  }

  template <typename Function>
  bool find(const std::string& symbol, Function& function) const {
    function = reinterpret_cast<Function>(dlsym(handle_, symbol.c_str()));
    return function != nullptr;
  }
  const std::string& name() const { return name_; }

 private:
  Library(void* handle, std::string name) : handle_(handle), name_(std::move(name)) {}
  void* handle_;
  std::string name_;
};

// What each required function lacks, in one go.
class Missing {
 public:
  void note(bool found, const char* symbol) {
    if (!found) names_ += (names_.empty() ? "" : ", ") + std::string(symbol);
  }
  bool any() const { return !names_.empty(); }
  const std::string& names() const { return names_; }

 private:
  std::string names_;
};

void find_newer_functions(const Library& library, NcclTable& nccl) {
  const auto since = [&](int version, const char* symbol, auto& function) {
    if (nccl.version >= version) library.find(symbol, function);
  };
  since(NCCL_VERSION(2, 18, 0), "ncclCommSplit", nccl.CommSplit);
  since(NCCL_VERSION(2, 19, 0), "ncclCommRegister", nccl.CommRegister);
  since(NCCL_VERSION(2, 19, 0), "ncclCommDeregister", nccl.CommDeregister);
  since(NCCL_VERSION(2, 23, 0), "ncclCommInitRankScalable", nccl.CommInitRankScalable);
  since(NCCL_VERSION(2, 27, 0), "ncclCommShrink", nccl.CommShrink);
  since(NCCL_VERSION(2, 28, 0), "ncclCommRevoke", nccl.CommRevoke);
  since(NCCL_VERSION(2, 28, 0), "ncclAlltoAll", nccl.AlltoAll);
  since(NCCL_VERSION(2, 28, 0), "ncclGather", nccl.Gather);
  since(NCCL_VERSION(2, 28, 0), "ncclScatter", nccl.Scatter);
  since(NCCL_VERSION(2, 29, 0), "ncclCommGetUniqueId", nccl.CommGetUniqueId);
  since(NCCL_VERSION(2, 29, 0), "ncclCommGrow", nccl.CommGrow);
}

Result<NcclTable> open_nccl() {
  // NCCL reads its environment once, at its first call.
  prepare_nccl_environment();
  Result<Library> library = Library::open("MUSTER_NCCL_LIBRARY", {"libnccl.so.2", "libnccl.so"});
  if (!library) return unavailable("nccl: " + library.error().message);
  NcclTable nccl;
  nccl.path = library->name();
  Missing missing;
#define MUSTER_FIND(name) missing.note(library->find("nccl" #name, nccl.name), "nccl" #name);
  MUSTER_NCCL_FUNCTIONS(MUSTER_FIND)
#undef MUSTER_FIND
  if (nccl.GetVersion == nullptr || nccl.GetVersion(&nccl.version) != ncclSuccess) {
    return unavailable("nccl: " + nccl.path + " does not say its version");
  }
  if (nccl.version < kOldestNccl || missing.any()) {
    return unavailable("nccl: " + nccl.path + " is NCCL " + nccl_version_text(nccl.version) +
                       "; at least " + nccl_version_text(kOldestNccl) + " is needed" +
                       (missing.any() ? " (it lacks " + missing.names() + ")" : ""));
  }
  find_newer_functions(*library, nccl);
  return nccl;
}

Result<CudaTable> open_cuda() {
  std::vector<std::string> names;
  for (const int major : kCudaMajors)
    names.push_back("libcudart.so." + std::to_string(major));
  names.emplace_back("libcudart.so");
  Result<Library> library = Library::open("MUSTER_CUDART_LIBRARY", std::move(names));
  if (!library) return unavailable("cuda: " + library.error().message);
  CudaTable cuda;
  cuda.path = library->name();
  Missing missing;
#define MUSTER_FIND(name) missing.note(library->find("cuda" #name, cuda.name), "cuda" #name);
  MUSTER_CUDA_FUNCTIONS(MUSTER_FIND)
  MUSTER_FIND(Malloc)
  MUSTER_FIND(EventCreateWithFlags)
  MUSTER_FIND(StreamCreateWithFlags)
#undef MUSTER_FIND
  if (missing.any()) return unavailable("cuda: " + cuda.path + " lacks " + missing.names());
  if (!library->find("cudaGetDeviceProperties_v2", cuda.GetDeviceProperties)) {
    library->find("cudaGetDeviceProperties", cuda.GetDeviceProperties);
  }
  // Registered after the runtime's own handlers, so run before them.
  opened_in = getpid();
  std::atexit([] { exiting = true; });
  return cuda;
}

}  // namespace

Result<const NcclTable*> nccl_table() {
  static const Result<NcclTable>& table = *new Result<NcclTable>(open_nccl());  // never destroyed
  if (!table) return table.error();
  return &*table;
}

Result<const CudaTable*> cuda_table() {
  static const Result<CudaTable>& table = *new Result<CudaTable>(open_cuda());
  if (!table) return table.error();
  return &*table;
}

std::string nccl_version_text(int version) {
  const int major = version < 10000 ? version / 1000 : version / 10000;  // until 2.8, since 2.9
  const int minor = version < 10000 ? version / 100 % 10 : version / 100 % 100;
  return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(version % 100);
}

bool driver_usable() {
  return !exiting && opened_in == getpid();
}

}  // namespace muster::comm::detail
