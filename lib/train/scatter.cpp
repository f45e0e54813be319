#include "lib/train/scatter.h"

#include <algorithm>
#include <cstddef>
#include <exception>
#include <span>

#include "clnet/device.h"
#include "clnet/error.h"
#include "lib/data/batch_maker.h"
#include "lib/train/checkpoint.h"
#include "lib/train/evaluate.h"
#include "lib/train/packing.h"

namespace clnet::train {

namespace {

void send_message(const std::string& message, int to, const dist::Group& group) {
  dist::send(std::vector<std::int64_t>{static_cast<std::int64_t>(message.size())}, to, group);
  dist::send({Dtype::u8, message.data(), message.size()}, to, group);
}
std::string received(const dist::Group& group) {
  std::vector<std::int64_t> size(1);
  dist::recv(size, has_data, group);
  std::string message(static_cast<std::size_t>(size[0]), '\0');
  dist::recv(host_array(message), has_data, group);
  return message;
}

/// The parts of a batch for the devices of a rank; none at the end.
std::string message_of(const std::vector<data::Batch>& parts) {
  Packer packer;
  packer.number(static_cast<std::int64_t>(parts.empty() ? Sent::end : Sent::content));
  for (const auto& batch : parts) {
    for (const auto number : {batch.rows.first, batch.rows.count, batch.rows.batch}) packer.number(number);
    const auto arrays = batch.images.defined() ? batch.size() : 0;
    packer.number(static_cast<std::int64_t>(arrays));
    for (std::size_t i = 0; i < arrays; ++i) {
      packer.text(i < batch.names.size() ? batch.names[i] : "");
      packer.value(batch[i]);
    }
  }
  return packer.take();
}
std::vector<data::Batch> parts_of(const std::string& message, const std::vector<Device>& devices) {
  Unpacker unpacker(message);
  if (kind_of(unpacker) == Sent::end) return {};
  std::vector<data::Batch> parts;
  for (const auto& device : devices) {
    data::Rows rows;
    for (auto* number : {&rows.first, &rows.count, &rows.batch}) *number = unpacker.number();
    std::vector<data::Array> arrays(static_cast<std::size_t>(unpacker.number()));
    for (auto& array : arrays) {
      auto name = unpacker.text();
      array = unpacker.value();
      array.name = std::move(name);
    }
    parts.push_back(arrays.empty() ? data::Batch() : data::uploaded(std::move(arrays), device));
    parts.back().rows = rows;
  }
  return parts;
}

}  // namespace

Scattered::Scattered(const data::Dataset& of_first, const dist::Group& group, bool compared)
    : group_(group), source_(group.rank() == has_data ? &of_first : nullptr) {
  const auto text = from_first(group, [&] {
    Packer packer;
    for (const std::int64_t number :
         {of_first.size(), std::int64_t{all_labels_count(of_first)}, std::int64_t{is_mixed(of_first)}})
      packer.number(number);
    packer.text(normalization_text(of_first));
    packer.text(compared ? of_first.fingerprint() : "");
    return packer.take();
  });
  Unpacker unpacker(text);
  facts_.size = unpacker.number();
  facts_.all_labels_count = unpacker.number() != 0;
  facts_.mixes = unpacker.number() != 0;
  facts_.normalization = unpacker.text();
  facts_.fingerprint = unpacker.text();
}

void require_equal_validation(const dist::Group& group, bool here) {
  dist::agree({{"validation data", here ? "given" : "none"}}, group);
}

const data::Dataset* held(const data::Dataset& dataset) {
  const auto* scattered = dynamic_cast<const Scattered*>(&dataset);
  return scattered ? scattered->source() : &dataset;
}

BatchSource::BatchSource(const data::Dataset& dataset, const data::BatchOptions& options, Receivers receivers)
    : receivers_(std::move(receivers)) {
  const auto* scattered = dynamic_cast<const Scattered*>(&dataset);
  if (!scattered) {
    parts_.push_back({data::batches(dataset, options)});
    return;
  }
  group_ = scattered->group();
  source_ = scattered->source();
  options_ = options;
  if (!receivers_.own.empty()) return;
  receivers_ = {std::vector<std::size_t>(static_cast<std::size_t>(group_->size()), 1), {Device::current()}};
}

void BatchSource::begin() {
  const auto shares = options_.share->weights.size();
  // Each share has workers of its own; a dataset for one thread is read by this one.
  options_.workers /= static_cast<std::int64_t>(shares);
  for (options_.share->index = 0; options_.share->index < shares; ++options_.share->index)
    parts_.push_back({data::batches(*source_, options_)});
}

std::optional<data::Batch> BatchSource::Part::next() {
  if (at)
    ++*at;
  else
    at = batches.begin();
  if (*at == batches.end()) return std::nullopt;
  return **at;
}

std::optional<data::Batch> BatchSource::next() {
  if (!group_) return parts_[0].next();
  auto parts = next_parts();
  return parts.empty() ? std::nullopt : std::optional(std::move(parts[0]));
}

std::vector<data::Batch> BatchSource::next_parts() {
  return group_->rank() == has_data ? next_of_first() : parts_of(received(*group_), receivers_.own);
}

std::vector<data::Batch> BatchSource::next_of_first() {
  const auto send_to = [&](std::size_t rank, const std::string& message) {
    send_message(message, static_cast<int>(rank), *group_);
  };
  std::vector<data::Batch> own;
  const auto ranks = static_cast<std::size_t>(group_->size());
  std::vector<std::string> messages(ranks);
  try {
    if (parts_.empty()) begin();
    auto part = parts_.begin();
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      std::vector<data::Batch> its;
      for (std::size_t i = 0; i < receivers_.devices_by_rank[rank]; ++i) {
        const DeviceScope here(receivers_.own[rank == has_data ? i : 0]);
        if (auto batch = (part++)->next()) its.push_back(std::move(*batch));
      }
      if (rank == has_data)
        own = std::move(its);
      else
        messages[rank] = message_of(its);
    }
  } catch (const std::exception& error) {
    for (std::size_t rank = 1; rank < ranks; ++rank) send_to(rank, told(error));
    throw;
  }
  for (std::size_t rank = 1; rank < ranks; ++rank) send_to(rank, messages[rank]);
  return own;
}

}  // namespace clnet::train
