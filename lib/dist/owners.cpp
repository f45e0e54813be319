#include "lib/dist/owners.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "lib/dist/engine.h"
#include "lib/dist/exchange.h"
#include "lib/dist/members.h"
#include "lib/exec/launch/recorder.h"
#include "lib/graph/op.h"

namespace clnet::dist {

namespace {

/// A value's place on the device: where its owner reads it, or another rank writes it.
struct Placed {
  int owner;
  exec::Ref ref;
  std::size_t bytes;
  bool needed;
};

/// Values of one owner that are sent together.
struct Message {
  std::vector<std::size_t> values;
  std::size_t size = 0;
  std::shared_ptr<std::byte[]> bytes;
  std::shared_ptr<Posted> posted;
};

/// In the order of owners.
std::vector<Message> messages_of(const std::vector<Placed>& values, int ranks) {
  std::vector<Message> messages;
  for (int owner = 0; owner < ranks; ++owner) {
    bool begins = true;
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (values[i].owner != owner) continue;
      if (std::exchange(begins, false) || messages.back().size >= next_bucket) messages.emplace_back();
      messages.back().values.push_back(i);
      messages.back().size += values[i].bytes;
    }
  }
  return messages;
}

/// While one message is written to the device, the others are on their way.
void exchange(exec::HostContext& context, const std::vector<Placed>& values, const Group& group) {
  const auto& members = members_of(group);
  const auto for_each = [&](const Message& message, const auto& what) {
    std::size_t at = 0;
    for (const auto i : message.values) {
      what(values[i], message.bytes.get() + at);
      at += values[i].bytes;
    }
  };
  auto messages = messages_of(values, members->size());
  for (auto& message : messages) {
    const auto owner = values[message.values[0]].owner;
    message.bytes = std::make_shared_for_overwrite<std::byte[]>(message.size);
    if (owner == members->rank)
      for_each(message, [&](const Placed& value, std::byte* bytes) { context.read(value.ref, bytes, value.bytes); });
    message.posted = members->engine->post({.kind = Kind::broadcast,
                                            .group = members,
                                            .dtype = Dtype::u8,
                                            .count = message.size,
                                            .out = message.bytes.get(),
                                            .peer = owner});
  }
  for (auto& message : messages) {
    message.posted->wait();
    if (values[message.values[0]].owner == members->rank) continue;
    for_each(message, [&](const Placed& value, const std::byte* bytes) {
      if (value.needed) context.write(value.ref, message.bytes, bytes, value.bytes);
    });
  }
}

/// Its inputs are the values and one that makes it wait. Its outputs are the other ranks' values, and a number.
class FromOwnersOp : public Op {
 public:
  FromOwnersOp(Group group, std::vector<std::int64_t> owners) : group_(std::move(group)), owners_(std::move(owners)) {}
  std::string_view name() const override { return "from_owners"; }
  Fields fields() const override { return {{"group", std::int64_t{members_of(group_)->id}}, {"owners", owners_}}; }
  Precision precision() const override { return Precision::own; }

  Specs infer(const Specs& inputs) const override {
    Specs outputs;
    for (std::size_t i = 0; i < owners_.size(); ++i)
      if (!is_own(i)) outputs.push_back(inputs[i]);
    outputs.push_back({Shape{}, Dtype::u8});
    return outputs;
  }

  void lower(exec::Recorder& recorder) const override {
    std::vector<Placed> placed;
    std::vector<exec::Ref> reads, writes;
    for (std::size_t i = 0; i < owners_.size(); ++i) {
      const bool needed = is_own(i) || recorder.needs_output(writes.size());
      const auto ref = is_own(i) ? recorder.input(i) : recorder.output(writes.size());
      placed.push_back({static_cast<int>(owners_[i]), ref, static_cast<std::size_t>(recorder.spec(ref).bytes()), needed});
      (is_own(i) ? reads : writes).push_back(ref);
      if (!is_own(i)) recorder.expect_change(recorder.input(i));
    }
    reads.push_back(recorder.input(owners_.size()));
    const auto sent = recorder.output(writes.size());
    writes.push_back(sent);
    const auto call = [group = group_, placed = std::move(placed), sent](exec::HostContext& context) {
      exchange(context, placed, group);
      const auto number = std::make_shared<const std::byte>();
      context.write(sent, number, number.get(), sizeof(std::byte));
    };
    recorder.host({std::string(name()), std::move(reads), std::move(writes), call, 0, true});
    recorder.decline_epilogue();
  }

 private:
  bool is_own(std::size_t value) const { return owners_[value] == group_.rank(); }

  Group group_;
  std::vector<std::int64_t> owners_;
};

}  // namespace

FromOwners from_owners(const std::vector<Owned>& values, const Tensor& after, const Group& group) {
  std::vector<std::int64_t> owners;
  Tensors inputs;
  for (const auto& value : values) {
    owners.push_back(value.owner);
    inputs.push_back(value.value);
  }
  inputs.push_back(after);
  auto outputs = apply_all(std::make_shared<FromOwnersOp>(group, std::move(owners)), std::move(inputs));
  FromOwners result;
  std::size_t next = 0;
  for (const auto& value : values) result.values.push_back(value.owner == group.rank() ? value.value : outputs[next++]);
  result.sent = outputs[next];
  return result;
}

}  // namespace clnet::dist
