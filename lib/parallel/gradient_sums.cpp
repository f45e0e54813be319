#include "lib/parallel/gradient_sums.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <utility>

#include "clnet/error.h"
#include "clnet/ops.h"
#include "lib/cl/staging.h"
#include "lib/dist/exchange.h"
#include "lib/exec/launch/recorder.h"
#include "lib/exec/options/options.h"
#include "lib/graph/op.h"
#include "lib/parallel/meeting.h"

namespace clnet::parallel {

namespace {

/// As ranks have them. The backward pass comes to the last parameters first.
std::vector<std::vector<std::size_t>> buckets_from_behind(const std::vector<Shape>& shapes) {
  std::vector<Spec> specs;
  for (auto shape = shapes.rbegin(); shape != shapes.rend(); ++shape) specs.push_back({*shape, Dtype::f32});
  auto buckets = dist::buckets_of(specs);
  for (auto& bucket : buckets)
    for (auto& place : bucket) place = shapes.size() - 1 - place;
  return buckets;
}

/// target += factors * numbers, in double precision, added in the order of the parts and rounded once.
void add_numbers(const std::vector<const float*>& numbers, const std::vector<double>& factors, std::vector<float>& target) {
  std::array<double, 512> exact;
  for (std::size_t begin = 0; begin < target.size(); begin += exact.size()) {
    const auto count = std::min(exact.size(), target.size() - begin);
    exact.fill(0);
    for (std::size_t part = 0; part < numbers.size(); ++part) {
      // Of a mean over nothing.
      if (factors[part] == 0) continue;
      const auto* from = numbers[part] + begin;
      for (std::size_t i = 0; i < count; ++i) exact[i] += double{from[i]} * factors[part];
    }
    for (std::size_t i = 0; i < count; ++i) target[begin + i] = static_cast<float>(exact[i]);
  }
}

/// Who takes this evaluation's gradients; null: nobody, as where DetectAnomaly computes all a first time.
Attendance* taker() {
  auto* attendance = Attendance::now();
  if (!attendance || !attendance->gradients()) throw Error("give_gradients: this thread computes no part of a step");
  return attendance->detects() == exec::Options::now().anomaly.has_value() ? attendance : nullptr;
}

}  // namespace

/// Inputs: the gradients, and behind them their count where there is one. Who takes them is not the plan's affair.
class GradientSums::GiveOp : public Op {
 public:
  explicit GiveOp(bool has_count) : has_count_(has_count) {}
  std::string_view name() const override { return "give_gradients"; }
  Fields fields() const override { return {{"has_count", std::int64_t{has_count_ ? 1 : 0}}}; }
  Precision precision() const override { return Precision::own; }
  Specs infer(const Specs&) const override { return {{Shape{}, Dtype::f32}}; }

  void lower(exec::Recorder& recorder) const override {
    const auto count = recorder.input_count() - (has_count_ ? 1 : 0);
    const auto host = [&](std::vector<exec::Ref> reads, std::function<void(exec::HostContext&)> call) {
      recorder.host({std::string(name()), std::move(reads), {}, std::move(call), 0, false, true});
    };
    if (has_count_)
      host({recorder.input(count)}, [ref = recorder.input(count)](exec::HostContext& context) {
        auto* to = taker();
        if (!to) return;
        float own = 0;
        context.read(ref, &own, sizeof own);
        to->gradients()->set_count(to->member(), own);
      });
    std::vector<Shape> shapes;
    for (std::size_t i = 0; i < count; ++i) shapes.push_back(recorder.spec(recorder.input(i)).shape);
    for (std::size_t bucket = 0; const auto& places : buckets_from_behind(shapes)) {
      std::vector<exec::Ref> refs;
      std::vector<std::size_t> counts;
      for (const auto place : places) {
        refs.push_back(recorder.input(place));
        counts.push_back(static_cast<std::size_t>(shapes[place].numel()));
      }
      host(refs, [refs, counts, bucket](exec::HostContext& context) {
        auto* to = taker();
        if (!to || !to->gradients()->misses(to->member(), bucket)) return;
        std::size_t all = 0;
        for (const auto each : counts) all += each;
        const auto bytes = context.device().extension<ocl::Staging>().take(all * sizeof(float));
        const std::shared_ptr<float[]> numbers(bytes, reinterpret_cast<float*>(bytes.get()));
        std::vector<exec::HostContext::Range> ranges;
        auto* at = numbers.get();
        for (std::size_t i = 0; i < refs.size(); at += counts[i++]) ranges.push_back({refs[i], at, counts[i] * sizeof(float)});
        context.read(ranges);
        to->aside([&] { to->gradients()->give(to->member(), bucket, numbers); });
      });
      ++bucket;
    }
    // What the evaluation asks for.
    const auto done = recorder.output();
    recorder.host({std::string(name()), {}, {done}, [done](exec::HostContext& context) {
                     const auto zero = std::make_shared<float>(0.0F);
                     context.write(done, zero, zero.get(), sizeof *zero);
                   }});
    recorder.decline_epilogue();
  }

 private:
  bool has_count_;
};

GradientSums::GradientSums(std::vector<Shape> shapes, const Options& options)
    : shapes_(std::move(shapes)), options_(options), parts_(options.parts) {
  for (auto& places : buckets_from_behind(shapes_)) {
    auto& bucket = buckets_.emplace_back();
    bucket.gradients = std::move(places);
    bucket.numbers.resize(options.parts);
  }
  for (std::size_t i = 0; i < shapes_.size(); ++i) sums_.emplace_back(count_of(i));
}

void GradientSums::begin(std::size_t part, double scale, double count) {
  const std::lock_guard lock(mutex_);
  parts_[part] = {scale, count};
}

void GradientSums::set_count(std::size_t part, double count) {
  const std::lock_guard lock(mutex_);
  parts_[part].count = count;
}

bool GradientSums::misses(std::size_t part, std::size_t bucket) const {
  const std::lock_guard lock(mutex_);
  const auto& of = buckets_[bucket];
  return of.given < parts_.size() && !of.numbers[part];
}

std::vector<double> GradientSums::factors() const {
  double all = 0;
  for (const auto& part : parts_) all += part.count;
  std::vector<double> result;
  for (const auto& part : parts_) {
    const double weight = options_.weighed ? 1 : all > 0 ? part.count / all : 0;
    result.push_back(weight * options_.factor / part.scale);
  }
  return result;
}

void GradientSums::give(std::size_t part, std::size_t bucket, std::shared_ptr<const float[]> numbers) {
  auto& of = buckets_[bucket];
  std::vector<std::shared_ptr<const float[]>> all;
  std::vector<double> by_part;
  {
    const std::lock_guard lock(mutex_);
    of.numbers[part] = std::move(numbers);
    if (++of.given < parts_.size()) return;
    all = std::exchange(of.numbers, {});
    by_part = factors();
  }
  std::vector<const float*> at;
  for (const auto& each : all) at.push_back(each.get());
  for (const auto gradient : of.gradients) {
    add_numbers(at, by_part, sums_[gradient]);
    for (auto& each : at) each += count_of(gradient);
  }
}

std::vector<Tensor> GradientSums::sums() const {
  std::vector<Tensor> result;
  for (std::size_t i = 0; i < shapes_.size(); ++i) result.push_back(Tensor::from(sums_[i], shapes_[i]));
  return result;
}

Tensor GradientSums::given(std::vector<Tensor> gradients, const Tensor& count) {
  for (auto& gradient : gradients)
    if (gradient.dtype() != Dtype::f32) gradient = cast(gradient, Dtype::f32);
  if (count.defined()) gradients.push_back(reshape(cast(count, Dtype::f32), {}));
  return apply_all(std::make_shared<GiveOp>(count.defined()), std::move(gradients))[0];
}

}  // namespace clnet::parallel
