// libFuzzer: archives of NumPy's arrays. Check sums would stop nearly every change, so each input is also taken as the deflated
// and the stored content of a sound archive.
#include <zlib.h>

#include <cstring>

#include "clnet/clnet.h"
#include "tests/readers/input.h"

namespace {

constexpr std::uint64_t most_bytes = 1 << 24;

void read(const std::string& content) {
  const clnet::test::MemoryFile file(reinterpret_cast<const std::uint8_t*>(content.data()), content.size());
  try {
    std::uint64_t bytes = 0;
    for (const auto& array : clnet::data::read_npz(file.path(), most_bytes)) bytes += array.bytes.size();
    if (bytes > most_bytes) std::abort();
  } catch (const clnet::FileError&) {
  }
}

template <class... Numbers>
std::string record(Numbers... numbers) {
  std::string result;
  (result.append(reinterpret_cast<const char*>(&numbers), sizeof numbers), ...);
  return result;
}

/// An archive of one member with this content, stored by `method`.
std::string archive(const std::string& stored, std::uint16_t method, const std::string& content) {
  const auto sum =
      static_cast<std::uint32_t>(::crc32_z(0, reinterpret_cast<const unsigned char*>(content.data()), content.size()));
  const std::string name = "a.npy";
  const auto common =
      record(std::uint16_t{20}, std::uint16_t{0}, method, std::uint32_t{0}, sum, static_cast<std::uint32_t>(stored.size()),
             static_cast<std::uint32_t>(content.size()), std::uint16_t{5}, std::uint16_t{0});
  const auto local = "PK\3\4" + common + name + stored;
  const auto entry = "PK\1\2" + record(std::uint16_t{20}) + common +
                     record(std::uint16_t{0}, std::uint16_t{0}, std::uint16_t{0}, std::uint32_t{0}, std::uint32_t{0}) + name;
  return local + entry + "PK\5\6" +
         record(std::uint32_t{0}, std::uint16_t{1}, std::uint16_t{1}, static_cast<std::uint32_t>(entry.size()),
                static_cast<std::uint32_t>(local.size()), std::uint16_t{0});
}

}  // namespace

CLNET_READER(npz) {
  const std::string input(reinterpret_cast<const char*>(data), size);
  read(input);
  read(archive(input, 0, input));
  std::string content(1 << 16, '\0');
  z_stream stream{};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) std::abort();
  stream.next_in = const_cast<unsigned char*>(data);
  stream.avail_in = static_cast<uInt>(size);
  stream.next_out = reinterpret_cast<unsigned char*>(content.data());
  stream.avail_out = static_cast<uInt>(content.size());
  inflate(&stream, Z_FINISH);
  content.resize(content.size() - stream.avail_out);
  inflateEnd(&stream);
  read(archive(input, 8, content));
  return 0;
}
