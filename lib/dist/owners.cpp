#include "lib/dist/owners.h"

#include <memory>
#include <utility>

#include "lib/dist/engine.h"
#include "lib/dist/exchange.h"
#include "lib/dist/members.h"

namespace clnet::dist {

namespace {

/// Values of one owner that are sent together.
struct Message {
  int owner;
  std::vector<const Owned*> values = {};
  std::size_t size = 0;
  std::shared_ptr<std::byte[]> bytes = nullptr;
  std::shared_ptr<Posted> posted = nullptr;
};

/// In the order of owners.
std::vector<Message> messages_of(const std::vector<Owned>& values, int ranks) {
  std::vector<Message> messages;
  for (int owner = 0; owner < ranks; ++owner) {
    bool begins = true;
    for (const auto& value : values) {
      if (value.owner != owner || value.bytes == 0) continue;
      if (std::exchange(begins, false) || messages.back().size >= next_bucket) messages.push_back({owner});
      messages.back().values.push_back(&value);
      messages.back().size += value.bytes;
    }
  }
  return messages;
}

}  // namespace

void from_owners(const std::vector<Owned>& values, const Group& group) {
  const auto& members = members_of(group);
  if (members->size() == 1) return;
  auto messages = messages_of(values, members->size());
  for (auto& message : messages) {
    message.bytes = std::make_shared_for_overwrite<std::byte[]>(message.size);
    if (message.owner != members->rank) continue;
    std::size_t at = 0;
    for (const auto* value : message.values) {
      value->read(message.bytes.get() + at);
      at += value->bytes;
    }
  }
  for (auto& message : messages)
    message.posted = members->engine->post({.kind = Kind::broadcast,
                                            .group = members,
                                            .dtype = Dtype::u8,
                                            .arrays = {{message.size, nullptr, message.bytes.get()}},
                                            .peer = message.owner,
                                            .owner = message.bytes});
  for (auto& message : messages) {
    message.posted->wait();
    if (message.owner == members->rank) continue;
    std::size_t at = 0;
    for (const auto* value : message.values) {
      value->write(message.bytes.get() + at);
      at += value->bytes;
    }
  }
}

}  // namespace clnet::dist
