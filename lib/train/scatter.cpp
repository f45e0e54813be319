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

std::string message_of(const std::optional<data::Batch>& batch) {
  Packer packer;
  packer.number(static_cast<std::int64_t>(batch ? Sent::content : Sent::end));
  if (!batch) return packer.take();
  for (const auto number : {batch->rows.first, batch->rows.count, batch->rows.batch}) packer.number(number);
  const auto arrays = batch->images.defined() ? batch->size() : 0;
  packer.number(static_cast<std::int64_t>(arrays));
  for (std::size_t i = 0; i < arrays; ++i) {
    packer.text(i < batch->names.size() ? batch->names[i] : "");
    packer.value((*batch)[i]);
  }
  return packer.take();
}
std::optional<data::Batch> batch_of(const std::string& message) {
  Unpacker unpacker(message);
  if (kind_of(unpacker) == Sent::end) return std::nullopt;
  data::Rows rows;
  for (auto* number : {&rows.first, &rows.count, &rows.batch}) *number = unpacker.number();
  std::vector<data::Array> arrays(static_cast<std::size_t>(unpacker.number()));
  for (auto& array : arrays) {
    auto name = unpacker.text();
    array = unpacker.value();
    array.name = std::move(name);
  }
  auto batch = arrays.empty() ? data::Batch() : data::uploaded(std::move(arrays), Device::current());
  batch.rows = rows;
  return batch;
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

BatchSource::BatchSource(const data::Dataset& dataset, const data::BatchOptions& options) {
  const auto* scattered = dynamic_cast<const Scattered*>(&dataset);
  if (!scattered) {
    parts_.push_back({data::batches(dataset, options)});
    return;
  }
  group_ = scattered->group();
  source_ = scattered->source();
  options_ = options;
}

void BatchSource::begin() {
  const auto ranks = static_cast<std::size_t>(group_->size());
  // Each share has workers of its own; a dataset for one thread is read by this one.
  options_.workers /= group_->size();
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    options_.share = data::Share{std::vector<double>(ranks, 1), rank};
    parts_.push_back({data::batches(*source_, options_)});
  }
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
  return group_->rank() == has_data ? next_of_first() : batch_of(received(*group_));
}

std::optional<data::Batch> BatchSource::next_of_first() {
  const auto send_to = [&](std::size_t rank, const std::string& message) {
    send_message(message, static_cast<int>(rank), *group_);
  };
  std::optional<data::Batch> own;
  const auto ranks = static_cast<std::size_t>(group_->size());
  std::vector<std::string> messages(ranks);
  try {
    if (parts_.empty()) begin();
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      auto batch = parts_[rank].next();
      if (rank == has_data)
        own = std::move(batch);
      else
        messages[rank] = message_of(batch);
    }
  } catch (const std::exception& error) {
    for (std::size_t rank = 1; rank < ranks; ++rank) send_to(rank, told(error));
    throw;
  }
  for (std::size_t rank = 1; rank < ranks; ++rank) send_to(rank, messages[rank]);
  return own;
}

}  // namespace clnet::train
