// Collectives as operations of a graph. Each is a call on the host within its evaluation's plan (lib/dist/exchange.h).
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "clnet/dist.h"
#include "clnet/ops.h"
#include "lib/dist/exchange.h"
#include "lib/dist/find_collective.h"
#include "lib/dist/members.h"
#include "lib/graph/node.h"
#include "lib/graph/op.h"

namespace clnet::dist {

namespace {

enum class Moves : std::uint8_t { all_reduce, reduce, all_gather, reduce_scatter, broadcast, send, recv };

std::string_view text_of(Moves kind) {
  switch (kind) {
    case Moves::all_reduce: return "all_reduce";
    case Moves::reduce: return "reduce";
    case Moves::all_gather: return "all_gather";
    case Moves::reduce_scatter: return "reduce_scatter";
    case Moves::broadcast: return "broadcast";
    case Moves::send: return "send";
    case Moves::recv: return "recv";
  }
  return {};
}

/// Blocks of the first dimension, as many as there are ranks: of a shape, or of which a shape is one.
Shape first_times(const Shape& shape, std::int64_t factor) {
  auto extents = shape.extents();
  extents[0] *= factor;
  return Shape(extents);
}
Shape first_part(const Shape& shape, std::int64_t parts) {
  auto extents = shape.extents();
  extents[0] /= parts;
  return Shape(extents);
}

/// What the host does with the bytes of one value. `root`: of a broadcast or reduction, or the other rank.
void move_bytes(Moves kind, const Group& group, int root, const Exchanged& value, const std::byte* from, std::byte* to) {
  const auto count = [](const Spec& spec) { return static_cast<std::size_t>(spec.shape.numel()); };
  const auto bytes = static_cast<std::size_t>(value.to_spec.bytes());
  const ConstHostArray in{value.from_spec.dtype, from, count(value.from_spec)};
  const HostArray out{value.to_spec.dtype, to, count(value.to_spec)};
  switch (kind) {
    case Moves::all_gather: all_gather(in, out, group); return;
    case Moves::reduce_scatter: reduce_scatter(in, out, group); return;
    case Moves::broadcast:
      std::memcpy(to, from, bytes);
      broadcast(out, root, group);
      return;
    case Moves::reduce:
      std::memcpy(to, from, bytes);
      all_reduce(out, group);
      if (group.rank() != root) std::memset(to, 0, bytes);
      return;
    case Moves::send:
      std::memcpy(to, from, bytes);
      send(in, root, group);
      return;
    case Moves::recv: recv(out, root, group); return;
    case Moves::all_reduce: break;  // sum_over_ranks() adds several at once
  }
}

/// Whether ranks add values in the device's own memory. Drivers of GPUs on the host's memory may map all of a buffer, and then
/// write all of it back: the arena is one buffer.
bool adds_in_place(const DeviceInfo& device) { return device.unified_memory && device.type == DeviceType::cpu; }

/// all_reduce has any number of inputs, and as many outputs. The others have one. The group is part of an operation, so that no
/// other group's plan is taken for it.
class CollectiveOp : public Op {
 public:
  /// `beside`: an all_reduce that the rest of the evaluation does not wait for, and the group's other collectives neither.
  CollectiveOp(Moves kind, Group group, int root, bool beside = false)
      : kind_(kind), group_(std::move(group)), root_(root), beside_(beside) {}
  std::string_view name() const override { return text_of(kind_); }
  Fields fields() const override {
    return {{"group", std::int64_t{members_of(group_)->id}},
            {"root", std::int64_t{root_}},
            {"beside", std::int64_t{beside_ ? 1 : 0}}};
  }
  Precision precision() const override { return Precision::own; }

  Specs infer(const Specs& inputs) const override {
    const std::int64_t ranks = group_.size();
    Specs outputs;
    for (const auto& [shape, dtype] : inputs) {
      const bool cut = kind_ == Moves::all_gather || kind_ == Moves::reduce_scatter;
      if (cut && shape.rank() == 0) throw ShapeError(fmt::format("{}: a scalar has no first dimension", name()));
      const bool adds = kind_ == Moves::all_reduce || kind_ == Moves::reduce || kind_ == Moves::reduce_scatter;
      if (adds && dtype == Dtype::boolean) throw DtypeError(fmt::format("{}: bool has no sum", name()));
      if (kind_ == Moves::reduce_scatter && shape[0] % ranks != 0)
        throw ShapeError(
            fmt::format("reduce_scatter: the first dimension of {} is no multiple of {} ranks", to_string(shape), ranks));
      if (kind_ == Moves::all_gather)
        outputs.push_back({first_times(shape, ranks), dtype});
      else
        outputs.push_back({kind_ == Moves::reduce_scatter ? first_part(shape, ranks) : shape, dtype});
    }
    return outputs;
  }

  /// Of the sum over all ranks of what is computed from the outputs.
  Tensors vjp(const Tensors& inputs, const Tensors& outputs, const Tensors& gradients) const override {
    if (kind_ == Moves::all_reduce) {
      Tensors known, result(inputs.size());
      for (const auto& gradient : gradients)
        if (gradient.defined()) known.push_back(gradient);
      auto sums = all_reduce(known, group_);
      for (std::size_t i = 0, next = 0; i < inputs.size(); ++i)
        if (gradients[i].defined() && is_floating(inputs[i].dtype()))
          result[i] = sums[next++];
        else if (gradients[i].defined())
          ++next;
      return result;
    }
    if (!is_floating(inputs[0].dtype())) return {Tensor{}};
    auto op = std::make_shared<CollectiveOp>(adjoint(), group_, root_);
    // The other rank answers what was sent, so it is sent before, also where nothing here reads the result.
    if (kind_ == Moves::send) return {gradients[0] + apply(std::move(op), {outputs[0]})};
    return {apply(std::move(op), {gradients[0]})};
  }

  void lower(exec::Recorder& recorder) const override {
    std::vector<Exchanged> values;
    for (std::size_t i = 0; i < recorder.input_count(); ++i) {
      const auto from = recorder.input(i), to = recorder.output(i);
      values.push_back({from, to, recorder.spec(from), recorder.spec(to), recorder.needs_output(i)});
    }
    if (kind_ == Moves::all_reduce)
      lower_sums(recorder, std::move(values));
    else
      recorder.host({std::string(name()),
                     {values[0].from},
                     {values[0].to},
                     [kind = kind_, group = group_, root = root_, value = values[0]](exec::HostContext& context) {
                       through_host(context, value, [&](const std::byte* from, std::byte* to) {
                         move_bytes(kind, group, root, value, from, to);
                       });
                     },
                     0,
                     true});
    recorder.decline_epilogue();
  }

 private:
  /// A call that begins each bucket, and one that ends it. The backward pass comes to the last parameters first.
  void lower_sums(exec::Recorder& recorder, std::vector<Exchanged> values) const {
    if (beside_) std::reverse(values.begin(), values.end());
    const auto sums = std::make_shared<SumOverRanks>(
        std::move(values), group_, SumOverRanks::Options{.beside = beside_, .shares_memory = adds_in_place(recorder.device())});
    const auto record = [&](SumOverRanks::Uses uses, std::function<void(exec::HostContext&)> call, bool begins) {
      recorder.host({.name = std::string(name()),
                     .reads = std::move(uses.reads),
                     .writes = std::move(uses.writes),
                     .call = std::move(call),
                     .once = true,
                     .early = beside_ && begins,
                     .ends_early = beside_ && !begins});
    };
    for (std::size_t i = 0; i < sums->buckets(); ++i)
      record(
          sums->of_begin(i), [sums, i](auto& context) { sums->begin(i, context); }, true);
    for (std::size_t i = 0; i < sums->buckets(); ++i)
      record(
          sums->of_end(i), [sums, i](auto& context) { sums->end(i, context); }, false);
  }

  Moves adjoint() const {
    switch (kind_) {
      case Moves::all_gather: return Moves::reduce_scatter;
      case Moves::reduce_scatter: return Moves::all_gather;
      case Moves::broadcast: return Moves::reduce;
      case Moves::reduce: return Moves::broadcast;
      case Moves::send: return Moves::recv;
      case Moves::recv: return Moves::send;
      case Moves::all_reduce: break;
    }
    return kind_;
  }

  Moves kind_;
  Group group_;
  int root_;
  bool beside_;
};

Tensor collective(Moves kind, const Tensor& x, const Group& group, int root = 0) {
  if (!x.defined()) throw Error(fmt::format("{}: the tensor is undefined", text_of(kind)));
  if (root < 0 || root >= group.size())
    throw Error(fmt::format("{}: there is no rank {}, only {}", text_of(kind), root, group.size()));
  if ((kind == Moves::send || kind == Moves::recv) && root == group.rank())
    throw Error(fmt::format("{}: rank {} is this one, expected another", text_of(kind), root));
  auto op = std::make_shared<CollectiveOp>(kind, group, root);
  if (group.size() > 1) return apply(std::move(op), {x});
  op->infer({x.spec()});
  return x;
}

std::vector<Tensor> all_reduce(const std::vector<Tensor>& tensors, const Group& group, bool beside) {
  for (std::size_t i = 0; i < tensors.size(); ++i)
    if (!tensors[i].defined()) throw Error(fmt::format("all_reduce: tensor {} is undefined", i));
  if (tensors.empty()) return {};
  auto op = std::make_shared<CollectiveOp>(Moves::all_reduce, group, 0, beside);
  if (group.size() > 1) return apply_all(std::move(op), tensors);
  Specs specs;
  for (const auto& tensor : tensors) specs.push_back(tensor.spec());
  op->infer(specs);
  return tensors;
}

}  // namespace

std::vector<Tensor> all_reduce(const std::vector<Tensor>& tensors, const Group& group) {
  return all_reduce(tensors, group, false);
}
std::vector<Tensor> all_reduce_beside(const std::vector<Tensor>& tensors, const Group& group) {
  return all_reduce(tensors, group, true);
}
Tensor all_reduce(const Tensor& x, const Group& group) { return collective(Moves::all_reduce, x, group); }
Tensor all_gather(const Tensor& x, const Group& group) { return collective(Moves::all_gather, x, group); }
Tensor reduce_scatter(const Tensor& x, const Group& group) { return collective(Moves::reduce_scatter, x, group); }
Tensor broadcast(const Tensor& x, int root, const Group& group) { return collective(Moves::broadcast, x, group, root); }
Tensor send(const Tensor& x, int to, const Group& group) { return collective(Moves::send, x, group, to); }
Tensor recv(const Tensor& like, int from, const Group& group) { return collective(Moves::recv, like, group, from); }

std::string_view find_collective(std::span<const Tensor> tensors) {
  std::unordered_set<const Node*> seen;
  std::vector<const Node*> open;
  const auto add = [&](std::span<const Tensor> more) {
    for (const auto& tensor : more)
      if (tensor.defined() && seen.insert(node_of(tensor).get()).second) open.push_back(node_of(tensor).get());
  };
  add(tensors);
  while (!open.empty()) {
    const auto& node = *open.back();
    open.pop_back();
    if (!node.op) continue;
    if (dynamic_cast<const CollectiveOp*>(node.op.get())) return node.op->name();
    add(node.inputs);
    add(differentiated(node));
  }
  return {};
}

}  // namespace clnet::dist
