// SPDX-License-Identifier: Apache-2.0
#include "nccl/report/exception_text.h"

#include <cxxabi.h>
#include <muster/comm/error.h>

#include <cstdlib>
#include <memory>
#include <string_view>
#include <system_error>
#include <typeinfo>

namespace muster::comm::detail {
namespace {

constexpr int kMaxCauses = 16;
constexpr const char* kForeign = "another language";

std::string type_of_current() {
  const std::type_info* type = abi::__cxa_current_exception_type();
  return type != nullptr ? demangled(type->name()) : kForeign;
}

std::string details_of(const Error& error) {
  std::string text = std::string(" [") + to_string(error.code);
  for (size_t i = 0; i < error.ranks.size(); i++) {
    text += i > 0 ? ", " : error.ranks.size() == 1 ? "; rank " : "; ranks ";
    text += std::to_string(error.ranks[i]);
  }
  return text + "]";
}

std::string with_text(std::string type, std::string_view text) {
  return text.empty() ? type : std::move(type) + ": " + std::string(text);
}

struct OneText {
  std::string text{};
  std::string comm_error{};
  std::exception_ptr nested{};
};

OneText text_of_standard(const std::exception& exception) {
  OneText one{with_text(type_of_current(), exception.what())};
  if (const auto* holder = dynamic_cast<const std::nested_exception*>(&exception)) {
    one.nested = holder->nested_ptr();
  }
  if (const auto* ours = dynamic_cast<const ErrorException*>(&exception)) {
    one.text += details_of(ours->error());
    one.comm_error = to_string(ours->error().code);
  }
  return one;
}

OneText one_text(const std::exception_ptr& exception) {
  try {
    std::rethrow_exception(exception);
  } catch (const std::exception& e) {
    return text_of_standard(e);
  } catch (const std::nested_exception& e) {
    return {"an exception of type " + type_of_current(), {}, e.nested_ptr()};
  } catch (const std::string& text) {
    return {with_text("std::string", text)};
  } catch (const char* text) {
    return {with_text("const char*", text != nullptr ? text : "")};
  } catch (...) {
    return {"an exception of type " + type_of_current()};
  }
}

// std::throw_with_nested() throws a type of its own that is both; its name is not the user's.
std::string without_wrapper(std::string text) {
  constexpr std::string_view kWrapper = "std::_Nested_exception<";
  if (!text.starts_with(kWrapper)) return text;
  // The first argument may have arguments itself.
  int depth = 1;
  size_t i = kWrapper.size();
  for (; i < text.size() && depth > 0; i++) {
    depth += text[i] == '<' ? 1 : text[i] == '>' ? -1 : 0;
  }
  if (depth > 0) return text;
  std::string inner = text.substr(kWrapper.size(), i - 1 - kWrapper.size());
  while (inner.ends_with(' '))
    inner.pop_back();
  return inner + text.substr(i);
}

}  // namespace

std::string demangled(const char* name) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(name, nullptr, nullptr, &status), std::free);
  return status == 0 ? text.get() : name;
}

void describe_type(const std::type_info* type, FixedText& to) {
  to.add("an exception of type ");
  if (type == nullptr) return to.add(kForeign);
  char* text = abi::__cxa_demangle(type->name(), nullptr, nullptr, nullptr);
  to.add(text != nullptr ? text : type->name());
  std::free(text);
}

ExceptionText text_of(const std::exception_ptr& exception) {
  ExceptionText result;
  std::exception_ptr current = exception;
  for (int depth = 0; current != nullptr && depth <= kMaxCauses; depth++) {
    OneText one = one_text(current);
    std::string text = without_wrapper(std::move(one.text));
    if (depth == 0) {
      result.message = std::move(text);
    } else {
      result.causes += "  caused by " + text + "\n";
    }
    if (result.comm_error.empty()) result.comm_error = std::move(one.comm_error);
    current = one.nested;
  }
  return result;
}

}  // namespace muster::comm::detail
