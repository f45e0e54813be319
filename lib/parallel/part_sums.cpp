#include "lib/parallel/part_sums.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

#include "clnet/error.h"
#include "clnet/ops.h"
#include "lib/exec/launch/recorder.h"
#include "lib/graph/op.h"
#include "lib/parallel/meeting.h"

namespace clnet::parallel {

struct PartSums::State {
  std::int64_t made = 0;
  /// A result of the last sum. The next one reads it, so that no device's plan has another order. A graph that ended does not
  /// hold it.
  Tensor last = {};
  bool ended = false;

  static std::vector<Tensor> add_up(const std::shared_ptr<State>& state, const std::vector<Tensor>& own, bool backward);
};

/// Inputs: the numbers to add, and behind them what comes before this sum. Which of a part's sums it is, and whether of its
/// backward pass, belongs to the operation instead of who adds, so that the next step, and the next training, has the plan of
/// this one.
class PartSums::SumOp : public Op {
 public:
  SumOp(std::int64_t which, std::size_t count, std::shared_ptr<State> state)
      : which_(which), count_(count), state_(std::move(state)) {}
  std::string_view name() const override { return "sum_over_devices"; }
  Fields fields() const override { return {{"which", which_}, {"count", static_cast<std::int64_t>(count_)}}; }
  Precision precision() const override { return Precision::own; }

  Specs infer(const Specs& inputs) const override {
    Specs outputs(inputs.begin(), inputs.begin() + static_cast<std::ptrdiff_t>(count_));
    for (const auto& spec : outputs)
      if (spec.dtype != Dtype::f32) throw DtypeError("sum_over_devices: adds f32 only");
    return outputs;
  }

  Tensors vjp(const Tensors& inputs, const Tensors&, const Tensors& gradients) const override {
    Tensors known, result(inputs.size());
    for (const auto& gradient : gradients)
      if (gradient.defined()) known.push_back(gradient);
    const auto sums = State::add_up(state_, known, true);
    for (std::size_t i = 0, next = 0; i < count_; ++i)
      if (gradients[i].defined()) result[i] = sums[next++];
    return result;
  }

  void lower(exec::Recorder& recorder) const override {
    struct Value {
      exec::Ref from, to;
      std::size_t count;
      bool needed;
    };
    std::vector<Value> values;
    exec::HostCall call{std::string(name()), {}, {}, nullptr, 0, true};
    for (std::size_t i = 0; i < count_; ++i) {
      const auto from = recorder.input(i), to = recorder.output(i);
      values.push_back({from, to, static_cast<std::size_t>(recorder.spec(from).shape.numel()), recorder.needs_output(i)});
      call.reads.push_back(from);
      call.writes.push_back(to);
    }
    call.call = [which = which_, values = std::move(values)](exec::HostContext& context) {
      auto* attendance = Attendance::now();
      if (!attendance || !attendance->meeting())
        throw Error(
            "sum_over_devices: batch norm over several devices has values only while all of them compute a step; the step "
            "function may only build graph");
      std::size_t all = 0;
      for (const auto& value : values) all += value.count;
      const auto numbers = std::make_shared_for_overwrite<float[]>(all);
      std::vector<exec::HostContext::Range> ranges;
      auto* at = numbers.get();
      for (const auto& value : values) {
        ranges.push_back({value.from, at, value.count * sizeof(float)});
        at += value.count;
      }
      context.read(ranges);
      attendance->add_up(which, {numbers.get(), all});
      at = numbers.get();
      for (const auto& value : values) {
        if (value.needed) context.write(value.to, numbers, at, value.count * sizeof(float));
        at += value.count;
      }
    };
    recorder.host(std::move(call));
    recorder.decline_epilogue();
  }

 private:
  std::int64_t which_;
  std::size_t count_;
  std::shared_ptr<State> state_;
};

std::vector<Tensor> PartSums::State::add_up(const std::shared_ptr<State>& state, const std::vector<Tensor>& own, bool backward) {
  if (state->ended) throw Error("sum_over_devices: batch norm over several devices has gradients only within its step");
  auto inputs = own;
  if (state->last.defined()) inputs.push_back(stop_gradient(state->last));
  const auto which = 2 * state->made++ + (backward ? 1 : 0);
  auto sums = apply_all(std::make_shared<SumOp>(which, own.size(), state), std::move(inputs));
  state->last = sums[0];
  return sums;
}

PartSums::PartSums() : state_(std::make_shared<State>()) {}

PartSums::~PartSums() {
  state_->ended = true;
  state_->last = {};
}

std::vector<Tensor> PartSums::add_up(const std::vector<Tensor>& own) const { return State::add_up(state_, own, false); }

}  // namespace clnet::parallel
