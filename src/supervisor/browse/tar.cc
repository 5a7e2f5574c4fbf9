// SPDX-License-Identifier: Apache-2.0
#include "supervisor/browse/tar.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>

namespace muster {

namespace {

constexpr int64_t kBlock = 512;
constexpr size_t kMaxName = 100;
constexpr int64_t kMaxSize = 077777777777;  // eleven octal digits
constexpr int64_t kEndBlocks = 2;

// Where the fields lie.
struct Field {
  size_t place;
  size_t size;
};
constexpr Field kName{0, 100}, kMode{100, 8}, kOwner{108, 8}, kGroup{116, 8}, kSize{124, 12},
    kTime{136, 12}, kSum{148, 8}, kMagic{257, 8};
constexpr size_t kTypePlace = 156;

void put_octal(std::string& header, Field field, int64_t number) {
  std::array<char, 24> digits{};
  std::snprintf(digits.data(), digits.size(), "%0*llo", static_cast<int>(field.size - 1),
                static_cast<unsigned long long>(number));
  std::memcpy(&header[field.place], digits.data(), field.size - 1);
}

std::string ustar_header(std::string_view name, int64_t size, int64_t unix_time, char type) {
  std::string header(static_cast<size_t>(kBlock), '\0');
  std::memcpy(&header[kName.place], name.data(), std::min(name.size(), kMaxName));
  put_octal(header, kMode, 0644);
  put_octal(header, kOwner, 0);
  put_octal(header, kGroup, 0);
  put_octal(header, kSize, std::min(size, kMaxSize));
  put_octal(header, kTime, std::clamp<int64_t>(unix_time, 0, kMaxSize));
  header[kTypePlace] = type;
  std::memcpy(&header[kMagic.place], "ustar\00000", kMagic.size);
  // The sum is made with spaces where it will stand.
  std::memset(&header[kSum.place], ' ', kSum.size);
  int64_t sum = 0;
  for (const char c : header)
    sum += static_cast<unsigned char>(c);
  put_octal(header, {kSum.place, kSum.size - 1}, sum);
  header[kSum.place + kSum.size - 2] = '\0';
  return header;
}

// "27 path=...\n": the number counts the whole record, itself included.
std::string pax_record(std::string_view key, std::string_view value) {
  const size_t rest = key.size() + value.size() + 3;
  size_t size = rest;
  while (size != rest + std::to_string(size).size())
    size = rest + std::to_string(size).size();
  return std::to_string(size) + " " + std::string(key) + "=" + std::string(value) + "\n";
}

}  // namespace

std::string tar_header(std::string_view name, int64_t size, int64_t unix_time) {
  std::string records;
  if (name.size() > kMaxName) records += pax_record("path", name);
  if (size > kMaxSize) records += pax_record("size", std::to_string(size));
  std::string header;
  if (!records.empty()) {
    header = ustar_header("pax", std::ssize(records), unix_time, 'x');
    header += records + tar_padding(std::ssize(records));
  }
  return header += ustar_header(name, size, unix_time, '0');
}

std::string tar_padding(int64_t size) {
  return std::string(static_cast<size_t>((kBlock - size % kBlock) % kBlock), '\0');
}

std::string tar_end() {
  return std::string(static_cast<size_t>(kBlock * kEndBlocks), '\0');
}

}  // namespace muster
