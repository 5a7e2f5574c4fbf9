// SPDX-License-Identifier: Apache-2.0
#include "supervisor/browse/progress_line.h"

#include <doctest/doctest.h>

#include <cmath>
#include <random>
#include <string>

namespace muster {

namespace {

void check(std::string_view line, int64_t step, int64_t steps, double rate,
           std::optional<double> loss) {
  INFO("line: ", std::string(line));
  Progress progress = parse_progress(line);
  CHECK(progress.step == step);
  CHECK(progress.steps == steps);
  CHECK(progress.steps_per_s == doctest::Approx(rate));
  CHECK(progress.loss.has_value() == loss.has_value());
  if (loss && progress.loss) CHECK(*progress.loss == doctest::Approx(*loss));
}

}  // namespace

TEST_CASE("progress is read from the lines that common programs print") {
  constexpr auto none = std::nullopt;
  check("step 812/1000", 812, 1000, -1, none);
  check("step 812/1000 loss 0.93", 812, 1000, -1, 0.93);
  check("[rank 3] Step: 812 of 1000, loss=0.93", 812, 1000, -1, 0.93);
  check("iter 100 | loss: 1.2", 100, -1, -1, 1.2);
  check("iter 100: loss 1.2345, time 20.10ms, mfu 1.5%", 100, -1, -1, 1.2345);
  check("step 250: train loss 2.1034, val loss 2.2", 250, -1, -1, 2.1034);
  check("step 250: val loss 2.2, train loss 2.1034", 250, -1, -1, 2.1034);
  check(" iteration       10/     100 | consumed samples:  160 | lm loss: 1.05E+01 | lr: 1e-4", 10,
        100, -1, 10.5);
  check("Epoch 3:  45%|████▌     | 450/1000 [00:10<00:12, 44.02it/s, v_num=0, train_loss=0.53]",
        450, 1000, 44.02, 0.53);
  check("epoch 3: 45%|███ | 450/1000 [00:10<00:12, 3.1it/s, loss=0.53]", 450, 1000, 3.1, 0.53);
  check("  2%|▏ | 12/600 [00:30<24:30,  2.5s/it]", 12, 600, 0.4, none);
  check("100%|████| 1.20k/3.00k [00:10<00:12, 120it/s]", 1200, 3000, 120, none);
  check("  0%|          | 0/600 [00:00<?, ?it/s]", 0, 600, -1, none);
  check("{'loss': 0.5321, 'grad_norm': 1.2, 'learning_rate': 5e-05, 'epoch': 0.1}", -1, -1, -1,
        0.5321);
  check("{\"step\": 10, \"loss\": 0.5}", 10, -1, -1, 0.5);
  check("Train Epoch: 1 [640/60000 (1%)]\tLoss: 2.310", 640, 60000, -1, 2.31);
  check("Epoch: [0][  10/5005]\tTime  0.264 ( 0.331)\tLoss 6.9468e+00 (7.0e+00)", 10, 5005, -1,
        6.9468);
  check("global_step=7 train/loss=0.25 val/loss=0.5", 7, -1, -1, 0.25);
  check("step 5, 2.5 steps/s", 5, -1, 2.5, none);
  check("step 5, 250 ms/step", 5, -1, 4, none);
}

TEST_CASE("of a line that is redrawn the last state counts") {
  check("\r step 1/10\r step 2/10\r step 3/10", 3, 10, -1, std::nullopt);
  check("\r 1/10\r\x1b[32m step 4/10\x1b[0m\r\n", 4, 10, -1, std::nullopt);
}

TEST_CASE("a loss that is not a number is news") {
  CHECK(std::isnan(*parse_progress("step 3 loss nan").loss));
  CHECK(std::isinf(*parse_progress("step 3 loss: inf").loss));
  check("loss -0.5", -1, -1, -1, -0.5);
}

TEST_CASE("other lines say nothing") {
  for (const char* line :
       {"", "hello", "loss function: cross entropy", "step by step", "reading /usr/lib/3/4",
        "val loss 0.5", "eval_loss=3", "2026/11/29 12:00", "[1/2", "lossless 3", "footstep 3",
        "at 3.5 samples/s", "1/2", "a/b it/s", "step 1e300", "steps: x"}) {
    INFO("line: ", std::string(line));
    CHECK_FALSE(parse_progress(line).any());
  }
}

TEST_CASE("any bytes are read without harm") {
  std::mt19937 random(17);
  const std::string letters = "step lo/0123456789.:=[]|ekmg\r\x1b\xe2\x96\x88ns it";
  for (int round = 0; round < 20'000; ++round) {
    std::string line;
    for (size_t i = random() % 60; i > 0; --i)
      line += letters[random() % letters.size()];
    Progress progress = parse_progress(line);
    CHECK((progress.steps == -1 || progress.step >= 0));
  }
  parse_progress(std::string(10 << 20, '/'));
}

TEST_CASE("what a newer line does not say stays") {
  Progress progress = parse_progress("step 5/10 loss 3");
  progress.update(parse_progress("step 6"));
  CHECK(progress == Progress{6, 10, -1, 3});
  progress.update(parse_progress("loss 2"));
  CHECK(progress == Progress{6, 10, -1, 2});
  progress.update(parse_progress("step 11"));
  CHECK(progress == Progress{11, -1, -1, 2});
}

}  // namespace muster
