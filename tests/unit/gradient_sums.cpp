// The gradients of a step's parts: given in buckets while the backward pass goes on, and added with the same bits in any order.
#include "lib/parallel/gradient_sums.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <future>
#include <random>
#include <thread>
#include <vector>

#include "clnet/autograd.h"
#include "clnet/ops.h"
#include "lib/exec/collect/work.h"
#include "lib/exec/lower/lower.h"

namespace clnet::parallel {
namespace {

using Numbers = std::vector<float>;

DeviceInfo some_cpu() {
  DeviceInfo info;
  info.compute_units = 4;
  info.max_work_group_size = 256;
  info.native_float_width = 8;
  info.prefers_vector_kernels = true;
  info.cache = 32 << 20;
  return info;
}

std::shared_ptr<const float[]> held(const Numbers& numbers) {
  const auto copy = std::make_shared_for_overwrite<float[]>(numbers.size());
  std::copy(numbers.begin(), numbers.end(), copy.get());
  return copy;
}

/// From behind: 800,000 bytes, 12, and 800,000, with which the first bucket has more than its 1 MiB.
const std::vector<Shape> shapes{{200'000}, {200'000}, {3}, {200, 1000}};

}  // namespace

TEST_CASE("gradients are given as soon as the backward pass has a bucket's") {
  // Of 1.44 MB each, so that the first bucket is full with one of them.
  std::vector<Tensor> weights;
  for (int i = 0; i < 4; ++i) weights.push_back(Tensor::from(Numbers(360'000, 0.01F), {600, 600}));
  Tensor y = Tensor::from(Numbers(4 * 600, 1.0F), {4, 600});
  for (const auto& weight : weights) y = tanh(matmul(y, weight));
  const Tensor count = sum(greater(y, 0.0).to(Dtype::f32));
  const std::vector<Tensor> wanted{GradientSums::given(gradients(sum(y), weights), count)};
  const auto recording = exec::lower(exec::Subgraph(exec::collect(wanted)), some_cpu()).recording;
  std::vector<std::size_t> calls;
  const auto& commands = recording.commands();
  for (std::size_t i = 0; i < commands.size(); ++i)
    if (const auto* call = std::get_if<exec::HostCall>(&commands[i]); call && call->early) calls.push_back(i);
  // The count, the last weight, and the others in a bucket of up to 25 MiB.
  REQUIRE(calls.size() == 3);
  CHECK(std::get<exec::HostCall>(commands[calls[1]]).reads.size() == 1);
  CHECK(std::get<exec::HostCall>(commands[calls[2]]).reads.size() == 3);
  const auto writes = [&](std::size_t command, exec::ValueId root) {
    bool found = false;
    exec::for_each_ref(commands[command], [&](exec::Ref ref, bool written) {
      found = found || (written && recording.value(ref.value).root == root);
    });
    return found;
  };
  for (const auto at : calls) {
    // Right behind the launch that makes the last of what it reads, or behind a call that waits for that.
    const auto& call = std::get<exec::HostCall>(commands[at]);
    std::size_t last = 0;
    for (const auto ref : call.reads)
      for (std::size_t i = 0; i < at; ++i)
        if (writes(i, recording.value(ref.value).root)) last = std::max(last, i);
    for (auto i = last + 1; i < at; ++i) CHECK(std::count(calls.begin(), calls.end(), i) == 1);
  }
  // Three more gradients, and what leads to them.
  CHECK(calls[2] > calls[1] + 5);
}

TEST_CASE("sums of gradients have the same bits whoever brings the last part") {
  std::mt19937 random(3);
  std::uniform_real_distribution<float> any(-1, 1);
  const std::vector<double> counts{5, 2, 1};
  const auto parts = counts.size();
  const std::vector<std::vector<std::size_t>> buckets{{3, 2, 1}, {0}};
  std::vector<std::vector<Numbers>> gradients(parts);
  for (auto& of_part : gradients)
    for (const auto& shape : shapes) {
      auto& numbers = of_part.emplace_back(static_cast<std::size_t>(shape.numel()));
      for (auto& number : numbers) number = any(random);
    }
  const auto given = [&](unsigned seed) {
    GradientSums sums(shapes, {.parts = parts, .weighed = false, .factor = 0.5});
    for (std::size_t part = 0; part < parts; ++part) sums.begin(part, 4, counts[part]);
    // Assertions are the test's own thread's.
    std::vector<std::future<bool>> all;
    for (std::size_t part = 0; part < parts; ++part)
      all.push_back(std::async(std::launch::async, [&, part] {
        bool right = true;
        std::mt19937 waits(seed + static_cast<unsigned>(part));
        sums.set_count(part, counts[part]);
        for (std::size_t bucket = 0; bucket < buckets.size(); ++bucket) {
          Numbers numbers;
          for (const auto k : buckets[bucket])
            numbers.insert(numbers.end(), gradients[part][k].begin(), gradients[part][k].end());
          std::this_thread::sleep_for(std::chrono::microseconds(waits() % 2000));
          right = right && sums.misses(part, bucket);
          sums.give(part, bucket, held(numbers));
          right = right && !sums.misses(part, bucket);
        }
        return right;
      }));
    for (auto& each : all) CHECK(each.get());
    std::vector<Numbers> result;
    for (const auto& sum : sums.sums()) result.push_back(sum.to_vector<float>());
    return result;
  };
  const auto once = given(1);
  for (std::size_t k = 0; k < shapes.size(); ++k) {
    Numbers want(gradients[0][k].size());
    for (std::size_t j = 0; j < want.size(); ++j) {
      double exact = 0;
      for (std::size_t part = 0; part < parts; ++part) exact += double{gradients[part][k][j]} * (counts[part] / 8 * 0.5 / 4);
      want[j] = static_cast<float>(exact);
    }
    CHECK(once[k] == want);
  }
  for (const unsigned seed : {20U, 300U, 4000U}) CHECK(given(seed) == once);
}

TEST_CASE("parts in which nothing counts give no gradients, and weighed ones only add") {
  GradientSums none({{2}}, {.parts = 2}), weighed({{2}}, {.parts = 2, .weighed = true, .factor = 2});
  for (auto* sums : {&none, &weighed})
    for (std::size_t part = 0; part < 2; ++part) {
      sums->begin(part, 2, 0);
      sums->give(part, 0, held({1, static_cast<float>(part)}));
    }
  CHECK(none.sums()[0].to_vector<float>() == Numbers{0, 0});
  CHECK(weighed.sums()[0].to_vector<float>() == Numbers{2, 1});
}

}  // namespace clnet::parallel
