// SPDX-License-Identifier: Apache-2.0
#include "supervisor/stacks/native_stacks.h"

#include <cxxabi.h>
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <stdlib.h>

#include <cstring>
#include <memory>
#include <vector>

#include "supervisor/stacks/held_thread.h"

namespace muster {

namespace {

// At the end, for threads that did not stand in their time.
constexpr Milliseconds kLastPatience{500};

std::string base_name(const char* path) {
  const std::string text = path == nullptr ? "" : path;
  return text.substr(text.rfind('/') + 1);
}

std::string demangled(const char* name) {
  if (name == nullptr) return "";
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(name, nullptr, nullptr, &status), ::free);
  return status == 0 && text ? text.get() : name;
}

// Debug files apart from the program would be looked for over the network, too.
int no_debug_file(Dwfl_Module*, void**, const char*, Dwarf_Addr, const char*, const char*,
                  GElf_Word, char**) {
  return -1;
}

// One process as libdwfl sees it: its mapped files, and the copy of the thread at hand.
class Unwinder {
 public:
  using Place = std::pair<std::string, uint64_t>;

  Unwinder(int pid, std::map<Place, NativeFrame>& known) : pid_(pid), known_(known) {}

  Result<void> open() {
    static constexpr Dwfl_Callbacks kFiles{::dwfl_linux_proc_find_elf, no_debug_file, nullptr,
                                           nullptr};
    dwfl_.reset(::dwfl_begin(&kFiles));
    if (!dwfl_) return trouble("begin");
    ::dwfl_report_begin(dwfl_.get());
    if (::dwfl_linux_proc_report(dwfl_.get(), pid_) != 0) return trouble("read its mappings");
    ::dwfl_report_end(dwfl_.get(), nullptr, nullptr);
    return attach();
  }

  // Where a Python interpreter is, in the program itself or in its library.
  PythonPlace python() {
    PythonPlace place;
    ::dwfl_getmodules(
        dwfl_.get(),
        [](Dwfl_Module* module, void**, const char* name, Dwarf_Addr, void* found) {
          if (base_name(name).find("python") == std::string::npos) return int{DWARF_CB_OK};
          auto& in = *static_cast<PythonPlace*>(found);
          const int count = ::dwfl_module_getsymtab(module);
          for (int i = 0; i < count; ++i) {
            GElf_Sym symbol;
            GElf_Addr address = 0;
            const char* text =
                ::dwfl_module_getsym_info(module, i, &symbol, &address, nullptr, nullptr, nullptr);
            if (text == nullptr) continue;
            if (std::strcmp(text, "_PyRuntime") == 0) in.runtime = address;
            if (std::strcmp(text, "Py_Version") == 0) in.version = address;
          }
          return int{in.runtime != 0 && in.version != 0 ? DWARF_CB_ABORT : DWARF_CB_OK};
        },
        &place, 0);
    return place;
  }

  std::vector<NativeFrame> frames(const ThreadCopy& copy) {
    copy_ = &copy;
    frames_.clear();
    ::dwfl_getthread_frames(
        dwfl_.get(), copy.tid,
        [](Dwfl_Frame* frame, void* self) { return static_cast<Unwinder*>(self)->take(frame); },
        this);
    copy_ = nullptr;
    return std::move(frames_);
  }

 private:
  Result<void> attach() {
    static constexpr Dwfl_Thread_Callbacks kThreads{
        // Nobody asks for all threads.
        [](Dwfl*, void*, void**) -> pid_t { return 0; },
        [](Dwfl*, pid_t, void* self, void** thread) {
          *thread = self;
          return true;
        },
        [](Dwfl*, Dwarf_Addr address, Dwarf_Word* word, void* self) {
          return static_cast<Unwinder*>(self)->read(address, word);
        },
        [](Dwfl_Thread* thread, void* self) {
          return static_cast<Unwinder*>(self)->set_registers(thread);
        },
        nullptr,
        nullptr};
    if (!::dwfl_attach_state(dwfl_.get(), nullptr, pid_, &kThreads, this)) return trouble("attach");
    return {};
  }

  static Error trouble(const char* what) {
    const char* why = ::dwfl_errmsg(-1);
    return Error{0, std::string(what) + ": " + (why == nullptr ? "unknown" : why)};
  }

  int take(Dwfl_Frame* frame) {
    Dwarf_Addr pc = 0;
    bool exact = false;
    if (!::dwfl_frame_pc(frame, &pc, &exact)) return DWARF_CB_ABORT;
    // A return address stands behind the call, maybe in the next function.
    frames_.push_back(name(exact ? pc : pc - 1));
    return frames_.size() < NativeStacks::kMaxFrames ? DWARF_CB_OK : DWARF_CB_ABORT;
  }

  NativeFrame name(Dwarf_Addr pc) {
    Dwfl_Module* module = ::dwfl_addrmodule(dwfl_.get(), pc);
    if (module == nullptr) return {};
    Dwarf_Addr start = 0;
    const char* file = nullptr;
    const char* path =
        ::dwfl_module_info(module, nullptr, &start, nullptr, nullptr, nullptr, &file, nullptr);
    if (path == nullptr) path = file;
    const Place place{path == nullptr ? "" : path, pc - start};
    if (const auto found = known_.find(place); found != known_.end()) return found->second;
    NativeFrame frame;
    frame.module = base_name(path);
    frame.function = demangled(::dwfl_module_addrname(module, pc));
    int line = 0;
    if (Dwfl_Line* at = ::dwfl_module_getsrc(module, pc)) {
      const char* source = ::dwfl_lineinfo(at, nullptr, &line, nullptr, nullptr, nullptr);
      if (source != nullptr) frame.source = base_name(source) + ":" + std::to_string(line);
    }
    return known_.emplace(place, std::move(frame)).first->second;
  }

  bool read(Dwarf_Addr address, Dwarf_Word* word) const {
    const uint64_t sp = copy_->registers.sp;
    if (address >= sp && address - sp + sizeof *word <= copy_->stack.size()) {
      std::memcpy(word, copy_->stack.data() + (address - sp), sizeof *word);
      return true;
    }
    return read_memory(pid_, address, word, sizeof *word);
  }

  bool set_registers(Dwfl_Thread* thread) const {
    const ThreadRegisters& registers = copy_->registers;
    ::dwfl_thread_state_register_pc(thread, registers.pc);
    return ::dwfl_thread_state_registers(thread, 0, ThreadRegisters::kCount,
                                         registers.dwarf.data());
  }

  const int pid_;
  std::map<Place, NativeFrame>& known_;
  std::unique_ptr<Dwfl, void (*)(Dwfl*)> dwfl_{nullptr, ::dwfl_end};
  const ThreadCopy* copy_ = nullptr;
  std::vector<NativeFrame> frames_;
};

// Why there is no use in asking for it, "" if there is.
std::string not_to_be_held(const ThreadView& thread) {
  switch (thread.state) {
    case 'D':
      return "it is stuck in the kernel";
    case 't':
      return "a debugger holds it";
    case 'Z':
    case 'X':
      return "it is dead";
    default:
      return "";
  }
}

}  // namespace

NativeStacks::~NativeStacks() {
  let_go(late_, kLastPatience);
}

void NativeStacks::add(ProcessView& process) {
  const std::string maps =
      read_proc_file("/proc/" + std::to_string(process.pid) + "/maps").value_or("");
  std::vector<std::pair<ThreadView*, ThreadCopy>> copies;
  for (ThreadView& thread : process.threads) {
    thread.native_trouble = not_to_be_held(thread);
    if (!thread.native_trouble.empty()) continue;
    let_go(late_, Milliseconds(0));
    Result<ThreadCopy> copy = copy_thread(process.pid, thread.tid, maps, kMaxStack);
    if (copy) {
      copies.emplace_back(&thread, std::move(*copy));
    } else {
      thread.native_trouble = copy.error().message;
      if (copy.error().code == ETIMEDOUT) late_.push_back(thread.tid);
    }
  }
  if (copies.empty()) return;
  Unwinder unwinder(process.pid, known_);
  const Result<void> opened = unwinder.open();
  for (auto& [thread, copy] : copies) {
    if (opened) thread->native = unwinder.frames(copy);
    if (!opened) thread->native_trouble = opened.error().message;
  }
  if (opened) add_python(process, unwinder.python());
}

void NativeStacks::add_python(ProcessView& process, const PythonPlace& place) {
  if (place.runtime == 0 || place.version == 0) return;
  auto stacks = read_python_stacks(
      place,
      [pid = process.pid](uint64_t address, void* out, size_t size) {
        return read_memory(pid, address, out, size);
      },
      process.trouble);
  for (ThreadView& thread : process.threads)
    thread.python = std::move(stacks[thread.tid]);
}

std::string short_function_name(const std::string& name) {
  static constexpr std::string_view kAnonymous = "(anonymous namespace)";
  std::string text;
  int depth = 0;
  for (size_t i = 0; i < name.size(); ++i) {
    if (depth == 0 && name.compare(i, kAnonymous.size(), kAnonymous) == 0) {
      text += kAnonymous;
      i += kAnonymous.size() - 1;
      continue;
    }
    if (name[i] == '<') ++depth;
    if (depth == 0 && name[i] == '(' && !text.ends_with("operator")) break;
    if (depth == 0) text += name[i];
    if (name[i] == '>' && depth > 0) --depth;
  }
  // What it returns, which templates tell: "void f<int>(int)".
  if (const size_t blank = text.rfind(' ');
      blank != std::string::npos && text.find("(anonymous namespace)") == std::string::npos &&
      text.find("operator") == std::string::npos) {
    text.erase(0, blank + 1);
  }
  return text;
}

}  // namespace muster
