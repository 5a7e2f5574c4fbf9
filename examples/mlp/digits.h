// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <muster/train/sampler.h>
#include <zlib.h>

#include <cstdlib>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace mlp {

constexpr size_t kPixels = 64;  // 8 x 8
constexpr size_t kDigits = 10;
constexpr size_t kTrainingImages = 1400;  // of 1,797; the others are the test set
constexpr const char* kDigitsFile = "examples/pytorch_ddp/digits.csv.gz";

// Images row by row, values 0 to 1, and what they show.
struct Images {
  std::vector<float> pixels{};
  std::vector<int> labels{};
  size_t size() const { return labels.size(); }

  // Those of these numbers, in this order.
  Images pick(std::span<const int64_t> numbers) const {
    Images picked;
    for (const int64_t number : numbers) {
      const auto first = pixels.begin() + number * static_cast<int64_t>(kPixels);
      picked.pixels.insert(picked.pixels.end(), first, first + kPixels);
      picked.labels.push_back(labels[static_cast<size_t>(number)]);
    }
    return picked;
  }
};

// The file (examples/pytorch_ddp/README.md says what it is): a line of 64 values of 0 to 16 and the
// digit for each image.
inline Images read_digits(const std::string& path) {
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rb"), gzclose);
  if (!file) throw std::runtime_error("cannot open " + path + "; --data says where it is");
  Images images;
  char line[512];
  while (gzgets(file.get(), line, sizeof(line)) != nullptr) {
    char* at = line;
    for (size_t i = 0; i < kPixels; ++i, ++at) {
      images.pixels.push_back(std::strtof(at, &at) / 16);
    }
    images.labels.push_back(static_cast<int>(std::strtol(at, nullptr, 10)));
  }
  if (images.size() <= kTrainingImages) throw std::runtime_error(path + " has too few images");
  return images;
}

struct Dataset {
  Images training{};
  Images test{};
};

// Mixed once, as examples/pytorch_ddp/train.py does it.
inline Dataset load_digits(const std::string& path) {
  const Images all = read_digits(path);
  const auto count = static_cast<int64_t>(all.size());
  const std::vector<int64_t> order = muster::train::random_permutation(count, 1);
  const std::span<const int64_t> numbers(order);
  return {all.pick(numbers.first(kTrainingImages)), all.pick(numbers.subspan(kTrainingImages))};
}

}  // namespace mlp
