// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace muster {

// The wire of PyTorch's TCPStore: numbers in host byte order, strings as a u64 length and bytes.
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the protocol is little-endian");

constexpr uint32_t kStoreMagic = 0x3C85F7CE;

// How connections begin that come to the store's port but not for the store: those of muster's
// agents. No query of any client has the first byte's number.
constexpr std::string_view kControlPreamble = "MUSTER1\n";

// Numbered as current clients (2.x) number them. WATCH_KEY exists in the 1.13 protocol only, which
// numbers its queries differently (store/legacy.h).
enum class Query : uint8_t {
  kValidate = 0,
  kSet = 1,
  kCompareSet = 2,
  kGet = 3,
  kAdd = 4,
  kCheck = 5,
  kWait = 6,
  kGetNumKeys = 7,
  kDeleteKey = 8,
  kAppend = 9,
  kMultiGet = 10,
  kMultiSet = 11,
  kCancelWait = 12,
  kPing = 13,
  kQueuePush = 14,
  kQueuePop = 15,
  kQueueLength = 16,
  kListKeys = 17,
  kBarrier = 18,
  kWatchKey = 19,
};

// A client's PING carries its process id and this bit. A 1.13 server, which knows neither VALIDATE
// nor PING, takes the first 9 bytes for a SET and 8 of them for the length of its key: the bit
// makes that one that no string can have, so that the server closes the connection at once, instead
// of awaiting or reserving terabytes. Linux' process ids are below it.
constexpr uint32_t kPingMark = 0x80'0000;

constexpr uint8_t kReady = 0, kNotReady = 1;            // CHECK
constexpr uint8_t kStopWaiting = 0, kWaitCanceled = 1;  // WAIT, BARRIER, CANCEL_WAIT

enum class Dialect : uint8_t { kCurrent, kLegacy };

// What one request may hold. PyTorch's own server takes keys of 8 KiB, values of 8 MiB and 131072
// keys; its older one has no limits, so that scripts exist that send more.
struct WireLimits {
  uint64_t key = uint64_t{64} << 10;
  uint64_t value = uint64_t{256} << 20;
  uint64_t keys = 131072;                // of one CHECK, WAIT, MULTI_GET or MULTI_SET
  uint64_t request = uint64_t{1} << 30;  // all of it
};

// Walks over the strings of a decoded request; each is a view into the received bytes.
class StringReader {
 public:
  explicit StringReader(std::string_view encoded) : rest_(encoded) {}

  // Only called as often as the request has strings: the decoder has checked every length.
  std::string_view next() {
    uint64_t length;
    std::memcpy(&length, rest_.data(), sizeof length);
    std::string_view text = rest_.substr(sizeof length, length);
    rest_.remove_prefix(sizeof length + length);
    return text;
  }

 private:
  std::string_view rest_;
};

// A whole request. The views point into the bytes it was decoded from.
struct Request {
  Query query = Query::kValidate;
  uint64_t count = 0;        // keys of a counted query, otherwise strings
  std::string_view encoded;  // the strings, for StringReader
  int64_t number = 0;        // delta of ADD, world size of BARRIER, magic or nonce
  size_t size = 0;           // bytes of the whole request

  StringReader strings() const { return StringReader(encoded); }
};

enum class Decoded { kRequest, kNeedMore, kMalformed };

// Finds where the first request of a byte sequence ends, checking every limit before it waits for
// more. Remembers how far it got, so that a large request which arrives in many pieces is walked
// once. One per connection.
class RequestDecoder {
 public:
  explicit RequestDecoder(const WireLimits& limits) : limits_(limits) {}

  void set_dialect(Dialect dialect) { dialect_ = dialect; }

  // `bytes` begins with the request's first byte: until an answer other than kNeedMore the caller
  // passes the same bytes again with more behind them (they may have moved).
  Decoded decode(std::string_view bytes, Request* request);

  // After kNeedMore: the size below which calling again is pointless.
  size_t needed() const { return needed_; }

  // After kMalformed, for people.
  const std::string& why() const { return why_; }

 private:
  Decoded malformed(std::string why);
  bool begin(uint8_t number);
  Decoded finish(std::string_view bytes, Request* request);

  const WireLimits limits_;
  Dialect dialect_ = Dialect::kCurrent;
  Query query_ = Query::kValidate;
  size_t at_ = 0;  // everything before it is checked
  size_t needed_ = 1;
  size_t strings_at_ = 0;
  uint64_t strings_left_ = 0;
  uint64_t string_index_ = 0;
  uint64_t count_ = 0;
  bool counted_ = false;  // the count has still to be read
  std::string why_;
};

// For encoders.
template <typename Int>
void append_int(std::string& out, Int value) {
  char raw[sizeof value];
  std::memcpy(raw, &value, sizeof value);
  out.append(raw, sizeof raw);
}

inline void append_string(std::string& out, std::string_view text) {
  append_int<uint64_t>(out, text.size());
  out.append(text);
}

}  // namespace muster
