#include "lib/io/npy_format.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstring>
#include <limits>
#include <optional>
#include <vector>

#include "clnet/error.h"
#include "lib/base/input_file.h"
#include "lib/io/convert_values.h"

namespace clnet::io {
namespace {

static_assert(std::endian::native == std::endian::little, "files are written little-endian");

constexpr std::string_view npy_magic = "\x93NUMPY";
constexpr std::uint64_t most_npy_header = std::uint64_t{1} << 16;
constexpr std::int64_t most_elements = std::numeric_limits<std::int32_t>::max();
constexpr std::size_t most_dimensions = 64;  // as NumPy has it

/// How NumPy's dtypes become clnet's. `convert` says whether all values fit.
struct NpyDtype {
  std::string_view name;
  std::size_t bytes;
  Dtype dtype;
  ConvertValues convert;
};
constexpr std::array npy_dtypes{
    NpyDtype{"b1", 1, Dtype::boolean, copy_bools},
    NpyDtype{"i1", 1, Dtype::i8, convert_values<std::int8_t, std::int8_t>},
    NpyDtype{"u1", 1, Dtype::u8, convert_values<std::uint8_t, std::uint8_t>},
    NpyDtype{"i2", 2, Dtype::i32, convert_values<std::int16_t, std::int32_t>},
    NpyDtype{"u2", 2, Dtype::i32, convert_values<std::uint16_t, std::int32_t>},
    NpyDtype{"i4", 4, Dtype::i32, convert_values<std::int32_t, std::int32_t>},
    NpyDtype{"u4", 4, Dtype::i64, convert_values<std::uint32_t, std::int64_t>},
    NpyDtype{"i8", 8, Dtype::i64, convert_values<std::int64_t, std::int64_t>},
    NpyDtype{"u8", 8, Dtype::i64, convert_values<std::uint64_t, std::int64_t>},
    NpyDtype{"f2", 2, Dtype::f16, convert_values<std::uint16_t, std::uint16_t>},
    NpyDtype{"f4", 4, Dtype::f32, convert_values<float, float>},
    NpyDtype{"f8", 8, Dtype::f64, convert_values<double, double>},
};
constexpr NpyDtype rounded_doubles{"f8", 8, Dtype::f32, convert_values<double, float>};

struct NpyHeader {
  NpyDtype dtype{};
  bool swapped = false, fortran = false;
  std::vector<std::int64_t> extents;
};

/// Reads the dict. It has three known keys and no nesting but the shape, so this parser knows nothing else of Python.
class DictParser {
 public:
  DictParser(std::string_view text, const ByteReader& source) : text_(text), source_(source) {}

  NpyHeader parse() {
    NpyHeader header;
    constexpr std::array<std::string_view, 3> keys{"descr", "fortran_order", "shape"};
    std::array<bool, keys.size()> seen{};
    expect('{');
    while (!taken('}')) {
      const auto key = quoted();
      expect(':');
      const auto which = static_cast<std::size_t>(std::find(keys.begin(), keys.end(), key) - keys.begin());
      if (which == keys.size()) source_.fail(fmt::format("its header has an unknown key {}", in_quotes(key)));
      if (std::exchange(seen[which], true)) source_.fail(fmt::format("its header has the key {} twice", in_quotes(key)));
      if (which == 0)
        dtype(header);
      else if (which == 1)
        header.fortran = boolean();
      else
        header.extents = shape();
      if (!taken(',')) {
        expect('}');
        break;
      }
    }
    skip_spaces();
    if (at_ != text_.size()) wrong("its end");
    for (std::size_t i = 0; i < keys.size(); ++i)
      if (!seen[i]) source_.fail(fmt::format("its header has no '{}'", keys[i]));
    return header;
  }

 private:
  [[noreturn]] void wrong(std::string_view expected) const {
    source_.fail(fmt::format("its header is no dict of NumPy: expected {} at byte {}, got {}", expected, at_,
                             in_quotes(text_.substr(at_, 10))));
  }
  void skip_spaces() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) ++at_;
  }
  bool taken(char c) {
    skip_spaces();
    const bool is_there = at_ < text_.size() && text_[at_] == c;
    at_ += is_there ? 1 : 0;
    return is_there;
  }
  void expect(char c) {
    if (!taken(c)) wrong(fmt::format("'{}'", c));
  }
  std::string_view quoted() {
    skip_spaces();
    const char quote = at_ < text_.size() ? text_[at_] : ' ';
    if (quote != '\'' && quote != '"') wrong("a text");
    const auto end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) wrong("a text with an end");
    const auto result = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return result;
  }
  bool boolean() {
    skip_spaces();
    for (const auto& [word, value] : {std::pair<std::string_view, bool>{"True", true}, {"False", false}})
      if (text_.substr(at_).starts_with(word)) {
        at_ += word.size();
        return value;
      }
    wrong("True or False");
  }
  void dtype(NpyHeader& header) {
    skip_spaces();
    if (at_ < text_.size() && text_[at_] == '[') source_.fail("holds records, which are not supported");
    const auto name = quoted();
    if (name.find('O') != std::string_view::npos) source_.fail("holds Python objects, which are not read");
    const auto known = std::find_if(npy_dtypes.begin(), npy_dtypes.end(),
                                    [&](const auto& d) { return name.size() == 3 && name.substr(1) == d.name; });
    if (known == npy_dtypes.end() || std::string_view("<>|=").find(name[0]) == std::string_view::npos)
      source_.fail(fmt::format("dtype {} is not supported", in_quotes(name)));
    header.dtype = *known;
    header.swapped = name[0] == '>';
  }
  std::vector<std::int64_t> shape() {
    std::vector<std::int64_t> extents;
    std::int64_t elements = 1;
    expect('(');
    while (!taken(')')) {
      skip_spaces();
      std::int64_t extent = 0;
      const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), extent);
      if (error == std::errc::result_out_of_range) source_.fail("its shape has an extent that is out of range");
      if (error != std::errc()) wrong("an extent");
      at_ = static_cast<std::size_t>(end - text_.data());
      if (taken('L')) skip_spaces();  // Python 2's long numbers
      if (extent < 0) source_.fail(fmt::format("its shape has the extent {}", extent));
      if (extents.size() == most_dimensions) source_.fail(fmt::format("its shape has more than {} dimensions", most_dimensions));
      // Empty arrays, too, get no extents that could not be stored.
      if (extent > most_elements || (extent > 0 && elements > most_elements / extent))
        source_.fail(fmt::format("its shape has more than {} elements", most_elements));
      elements *= std::max<std::int64_t>(extent, 1);
      extents.push_back(extent);
      if (!taken(',')) {
        expect(')');
        break;
      }
    }
    return extents;
  }

  std::string_view text_;
  const ByteReader& source_;
  std::size_t at_ = 0;
};

NpyHeader read_npy_header(ByteReader& source) {
  unsigned char start[8] = {};
  const auto got = source.read(start, sizeof start);
  if (got < sizeof start || std::memcmp(start, npy_magic.data(), npy_magic.size()) != 0)
    source.fail(got < sizeof start ? "is too short for an array of NumPy" : "is no array of NumPy: it has another magic number");
  const int major = start[6], minor = start[7];
  if (major < 1 || major > 3 || minor != 0)
    source.fail(fmt::format("is of version {}.{} of NumPy's format, expected 1.0, 2.0 or 3.0", major, minor));
  unsigned char length_bytes[4] = {};
  const std::size_t width = major == 1 ? 2 : 4;
  if (source.read(length_bytes, width) < width) source.fail("ends within its header");
  std::uint32_t length = 0;
  std::memcpy(&length, length_bytes, sizeof length);
  if (length > most_npy_header || length > source.most_left())
    source.fail(fmt::format("its header would have {} bytes, expected at most {}", length,
                            std::min(most_npy_header, source.most_left())));
  std::string text(length, '\0');
  if (source.read(text.data(), length) < length) source.fail("ends within its header");
  return DictParser(text, source).parse();
}

/// Elements of Fortran's order in C's.
std::vector<std::byte> in_c_order(const std::vector<std::byte>& from, const Shape& shape, std::size_t item) {
  std::vector<std::byte> result(from.size());
  const auto& extents = shape.extents();
  const auto rank = extents.size();
  std::vector<std::size_t> strides(rank, item), at(rank, 0);  // of the first dimension first
  for (std::size_t d = 1; d < rank; ++d) strides[d] = strides[d - 1] * static_cast<std::size_t>(extents[d - 1]);
  std::size_t place = 0;
  for (std::size_t out = 0; out < result.size(); out += item) {
    std::memcpy(result.data() + out, from.data() + place, item);
    for (std::size_t d = rank; d-- > 0;) {
      place += strides[d];
      if (++at[d] < static_cast<std::size_t>(extents[d])) break;
      place -= strides[d] * at[d];
      at[d] = 0;
    }
  }
  return result;
}

const NpyDtype& written_as(Dtype dtype) {
  const auto stored = dtype == Dtype::bf16 ? Dtype::f32 : dtype;
  const auto found = std::find_if(npy_dtypes.begin(), npy_dtypes.end(),
                                  [&](const auto& d) { return d.dtype == stored && d.bytes == size_of(stored); });
  if (found == npy_dtypes.end()) throw Error(fmt::format("npy: {} has no name in NumPy's format", to_string(dtype)));
  return *found;
}

}  // namespace

void ByteReader::fail(std::string_view reason) const { throw FileError(fmt::format("{}: {}", name_, reason)); }

data::Array read_npy_array(ByteReader& source, std::uint64_t most_bytes, Dtype doubles) {
  if (doubles != Dtype::f64 && doubles != Dtype::f32)
    throw DtypeError(fmt::format("NumPy's f8 are read as f64 or f32, not as {}", to_string(doubles)));
  const auto header = read_npy_header(source);
  const auto& dtype = header.dtype.dtype == Dtype::f64 && doubles == Dtype::f32 ? rounded_doubles : header.dtype;
  data::Array array;
  array.shape = Shape(header.extents);
  array.dtype = dtype.dtype;
  const auto count = static_cast<std::uint64_t>(array.shape.numel()), stored = count * dtype.bytes;
  if (stored > source.most_left())
    source.fail(fmt::format("its shape {} takes {} bytes, but no more than {} follow", to_string(array.shape), stored,
                            source.most_left()));
  const auto item = size_of(dtype.dtype);
  if (count * item > most_bytes)
    source.fail(fmt::format("takes {} bytes of memory, expected at most {}", count * item, most_bytes));
  constexpr std::uint64_t first_guess = std::uint64_t{64} << 20, step = std::uint64_t{1} << 17;
  array.bytes.reserve(static_cast<std::size_t>(std::min(count * item, first_guess)));
  std::vector<std::byte> chunk;
  for (std::uint64_t done = 0; done < count;) {
    const auto elements = static_cast<std::size_t>(std::min(step, count - done));
    chunk.resize(elements * dtype.bytes);
    const auto got = source.read(chunk.data(), chunk.size());
    if (got < chunk.size())
      source.fail(fmt::format("its data end after {} bytes, expected {}", done * dtype.bytes + got, stored));
    if (header.swapped)
      for (auto at = chunk.begin(); at != chunk.end(); at += static_cast<std::ptrdiff_t>(dtype.bytes))
        std::reverse(at, at + static_cast<std::ptrdiff_t>(dtype.bytes));
    const auto before = array.bytes.size();
    array.bytes.resize(before + elements * item);
    if (!dtype.convert(chunk.data(), elements, array.bytes.data() + before))
      source.fail(fmt::format("of dtype {} holds a value that is not {}", dtype.name, to_string(dtype.dtype)));
    done += elements;
  }
  char extra = 0;
  if (source.read(&extra, 1) != 0) source.fail(fmt::format("goes on behind its {} bytes of data", stored));
  if (header.fortran && array.shape.rank() > 1) array.bytes = in_c_order(array.bytes, array.shape, item);
  return array;
}

std::string npy_header(const Spec& spec) {
  constexpr std::size_t alignment = 64;
  const auto& dtype = written_as(spec.dtype);
  const auto& extents = spec.shape.extents();
  std::string text = fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': ({}{}), }}", dtype.bytes == 1 ? '|' : '<',
                                 dtype.name, fmt::join(extents, ", "), extents.size() == 1 ? "," : "");
  const std::size_t before = npy_magic.size() + 4;
  text.resize((before + text.size() + alignment) / alignment * alignment - before, ' ');
  text.back() = '\n';
  std::string header(npy_magic);
  header += {1, 0, static_cast<char>(text.size() & 0xff), static_cast<char>(text.size() >> 8)};
  return header + text;
}

std::string npy_data(Dtype dtype, std::string bytes) {
  if (dtype != Dtype::bf16) return bytes;
  std::string wide(2 * bytes.size(), '\0');
  for (std::size_t i = 0; i < bytes.size() / 2; ++i) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, bytes.data() + 2 * i, sizeof bits);
    const float value = bfloat16_to_float(bits);
    std::memcpy(wide.data() + 4 * i, &value, sizeof value);
  }
  return wide;
}

}  // namespace clnet::io
