#include "lib/io/safetensors_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "clnet/error.h"

namespace clnet::io {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian, and so is every OpenCL device");

constexpr std::string_view metadata_name = "__metadata__";

struct StoredDtype {
  std::string_view name;
  Dtype dtype;
  std::size_t bytes;
};
constexpr std::array stored_dtypes{
    StoredDtype{"F32", Dtype::f32, 4}, StoredDtype{"F16", Dtype::f16, 2}, StoredDtype{"BF16", Dtype::bf16, 2},
    StoredDtype{"F64", Dtype::f64, 8}, StoredDtype{"I32", Dtype::i32, 4}, StoredDtype{"I64", Dtype::i64, 8},
    StoredDtype{"I8", Dtype::i8, 1},   StoredDtype{"U8", Dtype::u8, 1},   StoredDtype{"BOOL", Dtype::boolean, 1},
};

/// Takes the JSON as it is parsed, so that nothing but tensors and metadata is ever held: a header's size bounds what it costs,
/// and nesting ends at the first bracket that does not belong.
class HeaderParser final : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit HeaderParser(std::uint64_t data_bytes) : data_bytes_(data_bytes) {}

  bool null() override { return wrong("null"); }
  bool boolean(bool) override { return wrong("a boolean"); }
  bool number_integer(std::int64_t value) override { return wrong(fmt::to_string(value)); }
  bool number_float(double, const std::string&) override { return wrong("a number that is not an unsigned integer"); }
  bool binary(binary_t&) override { return wrong("binary data"); }

  bool number_unsigned(std::uint64_t value) override {
    if (state_ == State::extents) {
      shape_.push_back(value);
    } else if (state_ == State::offsets) {
      offsets_.push_back(value);
      if (offsets_.size() > 2) return fail(fmt::format("{}: data_offsets has more than 2 numbers", tensor()));
    } else {
      return wrong(fmt::to_string(value));
    }
    return true;
  }

  bool string(std::string& value) override {
    if (state_ == State::metadata) {
      if (!header_.metadata.emplace(key_, value).second) return fail(fmt::format("metadata {} appears twice", in_quotes(key_)));
      return true;
    }
    if (state_ != State::entry || key_ != "dtype") return wrong("a string");
    const auto found = std::find_if(stored_dtypes.begin(), stored_dtypes.end(), [&](const auto& d) { return d.name == value; });
    if (found == stored_dtypes.end()) return fail(fmt::format("{}: dtype {} is not supported", tensor(), in_quotes(value)));
    dtype_ = *found;
    return true;
  }

  bool key(std::string& value) override {
    key_ = value;
    if (state_ == State::top) {
      name_ = value;
    } else if (state_ == State::entry) {
      const auto known = std::find(fields.begin(), fields.end(), value);
      if (known == fields.end()) return fail(fmt::format("{} has an unknown field {}", tensor(), in_quotes(value)));
      auto& seen = seen_[static_cast<std::size_t>(known - fields.begin())];
      if (seen) return fail(fmt::format("{} has the field {} twice", tensor(), value));
      seen = true;
    }
    return true;
  }

  bool start_object(std::size_t) override {
    if (state_ == State::start) {
      state_ = State::top;
    } else if (state_ == State::top && name_ == metadata_name) {
      if (std::exchange(has_metadata_, true)) return fail("__metadata__ appears twice");
      state_ = State::metadata;
    } else if (state_ == State::top) {
      state_ = State::entry;
      seen_ = {};
      shape_.clear();
      offsets_.clear();
    } else {
      return wrong("an object");
    }
    return true;
  }

  bool end_object() override {
    if (state_ == State::entry && !end_entry()) return false;
    state_ = state_ == State::top ? State::end : State::top;
    return true;
  }

  bool start_array(std::size_t) override {
    if (state_ != State::entry || (key_ != "shape" && key_ != "data_offsets")) return wrong("an array");
    state_ = key_ == "shape" ? State::extents : State::offsets;
    return true;
  }

  bool end_array() override {
    state_ = State::entry;
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) override {
    return fail(fmt::format("not valid JSON at byte {}", position));
  }

  const std::string& error() const { return error_; }
  SafetensorsHeader finish() { return std::move(header_); }

 private:
  enum class State { start, top, metadata, entry, extents, offsets, end };
  static constexpr std::array<std::string_view, 3> fields{"dtype", "shape", "data_offsets"};

  bool fail(std::string text) {
    error_ = std::move(text);
    return false;
  }
  std::string tensor() const { return fmt::format("tensor {}", in_quotes(name_)); }
  bool wrong(std::string_view got) {
    switch (state_) {
      case State::start:
      case State::end: return fail(fmt::format("expected a JSON object, got {}", got));
      case State::top: return fail(fmt::format("{}: expected an object, got {}", name_ == metadata_name ? name_ : tensor(), got));
      case State::metadata: return fail(fmt::format("metadata {}: expected a string, got {}", in_quotes(key_), got));
      case State::entry:
        return fail(fmt::format("{}: {} should be {}, got {}", tensor(), key_, key_ == "dtype" ? "a string" : "an array", got));
      case State::extents: return fail(fmt::format("{}: shape should hold unsigned integers, got {}", tensor(), got));
      case State::offsets: return fail(fmt::format("{}: data_offsets should hold unsigned integers, got {}", tensor(), got));
    }
    return false;
  }

  bool end_entry() {
    for (std::size_t i = 0; i < fields.size(); ++i)
      if (!seen_[i]) return fail(fmt::format("{} has no {}", tensor(), fields[i]));
    if (offsets_.size() != 2) return fail(fmt::format("{}: data_offsets has {} numbers, expected 2", tensor(), offsets_.size()));
    const auto begin = offsets_[0], end = offsets_[1];
    if (begin > end || end > data_bytes_)
      return fail(fmt::format("{}: data_offsets [{}, {}] do not lie in {} bytes of data", tensor(), begin, end, data_bytes_));
    constexpr std::uint64_t most = std::numeric_limits<std::int32_t>::max();
    const bool empty = std::find(shape_.begin(), shape_.end(), 0) != shape_.end();
    std::uint64_t elements = empty ? 0 : 1;
    for (const auto extent : shape_) {
      // Empty tensors, too, get no extent that could not be stored.
      if (extent > most || (!empty && extent > most / elements))
        return fail(fmt::format("{}: its shape has more than {} elements", tensor(), most));
      elements *= extent;
    }
    if (elements * dtype_.bytes != end - begin)
      return fail(fmt::format("{}: {} elements of {} take {} bytes, but data_offsets [{}, {}] hold {}", tensor(), elements,
                              dtype_.name, elements * dtype_.bytes, begin, end, end - begin));
    StoredTensor stored{name_, {Shape(std::vector<std::int64_t>(shape_.begin(), shape_.end())), dtype_.dtype}};
    stored.begin = begin;
    stored.end = end;
    header_.tensors.push_back(std::move(stored));
    return true;
  }

  const std::uint64_t data_bytes_;
  SafetensorsHeader header_;
  std::string error_;
  State state_ = State::start;
  bool has_metadata_ = false;
  std::string name_, key_;  ///< of the entry and of the field that is read
  std::array<bool, fields.size()> seen_{};
  StoredDtype dtype_{};
  std::vector<std::uint64_t> shape_, offsets_;
};

void require_unique_names(const std::vector<StoredTensor>& tensors) {
  std::vector<std::string_view> names;
  names.reserve(tensors.size());
  for (const auto& tensor : tensors) names.push_back(tensor.name);
  std::sort(names.begin(), names.end());
  if (const auto twin = std::adjacent_find(names.begin(), names.end()); twin != names.end())
    throw FileError(fmt::format("tensor {} appears twice", in_quotes(*twin)));
}

void require_gapless(const std::vector<StoredTensor>& tensors, std::uint64_t data_bytes) {
  std::vector<std::size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(tensors[a].begin, tensors[a].end) < std::pair(tensors[b].begin, tensors[b].end);
  });
  std::uint64_t filled = 0;
  for (const auto i : order) {
    if (tensors[i].begin != filled)
      throw FileError(fmt::format("tensor {} begins at byte {} of the data, expected {}: {}", in_quotes(tensors[i].name),
                                  tensors[i].begin, filled,
                                  tensors[i].begin < filled ? "it overlaps another" : "there is a gap"));
    filled = tensors[i].end;
  }
  if (filled != data_bytes) throw FileError(fmt::format("its tensors end at byte {} of {} bytes of data", filled, data_bytes));
}

std::string_view stored_name(const Spec& spec) {
  for (const auto& stored : stored_dtypes)
    if (stored.dtype == spec.dtype && stored.bytes == size_of(spec.dtype)) return stored.name;
  throw Error(fmt::format("safetensors: {} has no name in the format", to_string(spec.dtype)));
}

std::string json_string(const std::string& text) {
  try {
    return nlohmann::json(text).dump();
  } catch (const nlohmann::json::exception&) {
    throw Error(fmt::format("safetensors: {} is not UTF-8", in_quotes(text)));
  }
}

}  // namespace

SafetensorsHeader parse_header(std::string_view json, std::uint64_t data_bytes) {
  // The parser would skip white space and take a NUL for the end.
  if (!json.starts_with('{') || json.find('\0') != std::string_view::npos)
    throw FileError("its header is not a JSON object padded with spaces");
  HeaderParser parser(data_bytes);
  if (!nlohmann::json::sax_parse(json.begin(), json.end(), &parser))
    throw FileError(fmt::format("its header: {}", parser.error()));
  auto header = parser.finish();
  require_unique_names(header.tensors);
  require_gapless(header.tensors, data_bytes);
  return header;
}

SafetensorsHeader read_header(const InputFile& file) {
  constexpr std::uint64_t length_bytes = 8;
  if (file.size() < length_bytes) file.fail(fmt::format("has {} bytes, too few for a safetensors file", file.size()));
  std::uint64_t header_bytes = 0;
  file.read_at(0, &header_bytes, length_bytes);
  const auto rest = file.size() - length_bytes;
  if (header_bytes > rest || header_bytes > most_header_bytes)
    file.fail(fmt::format("not a safetensors file: the length of its header is {}, expected at most {}", header_bytes,
                          std::min(rest, most_header_bytes)));
  std::string json(static_cast<std::size_t>(header_bytes), '\0');
  file.read_at(length_bytes, json.data(), json.size());
  try {
    auto header = parse_header(json, rest - header_bytes);
    header.data_offset = length_bytes + header_bytes;
    return header;
  } catch (const FileError& error) {
    file.fail(error.what());
  }
}

std::string write_header(std::span<const StoredTensor> tensors, const std::map<std::string, std::string>& metadata) {
  std::string json = "{";
  const auto separate = [&] { json += json.size() > 1 ? "," : ""; };
  if (!metadata.empty()) {
    json += "\"__metadata__\":{";
    const char* comma = "";
    for (const auto& [key, value] : metadata)
      json += fmt::format("{}{}:{}", std::exchange(comma, ","), json_string(key), json_string(value));
    json += "}";
  }
  for (const auto& tensor : tensors) {
    if (tensor.name == metadata_name) throw Error("safetensors: a tensor cannot be named __metadata__");
    separate();
    json += fmt::format(R"({}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})", json_string(tensor.name),
                        stored_name(tensor.spec), fmt::join(tensor.spec.shape.extents(), ","), tensor.begin, tensor.end);
  }
  json += "}";
  json.resize((json.size() + 7) / 8 * 8, ' ');
  if (json.size() > most_header_bytes)
    throw Error(fmt::format("safetensors: {} names and shapes take {} bytes, more than the format's {}", tensors.size(),
                            json.size(), most_header_bytes));
  const std::uint64_t length = json.size();
  std::string header(sizeof length, '\0');
  std::memcpy(header.data(), &length, sizeof length);
  return header + json;
}

}  // namespace clnet::io
