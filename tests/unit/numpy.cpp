// NumPy's files in host memory: what NumPy wrote, and damage of every kind.
#include <zlib.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "clnet/data.h"
#include "clnet/error.h"
#include "tests/acceptance.h"
#include "tests/support/temporary.h"
#include "tests/unit/numpy_files.h"

namespace clnet::data {
namespace {

using Catch::Contains;

std::string of_digits(std::string_view digits) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2)
    bytes += static_cast<char>(std::stoi(std::string(digits.substr(i, 2)), nullptr, 16));
  return bytes;
}

template <class T>
std::vector<T> values_of(const Array& array) {
  const auto values = array.values<T>();
  return {values.begin(), values.end()};
}

/// A file of version 1.0 with this dict.
std::string npy(std::string dict, std::string_view content, char major = 1) {
  const auto length = static_cast<std::uint16_t>(dict.size());
  std::string file = "\x93NUMPY";
  file += {major, 0, static_cast<char>(length & 0xff), static_cast<char>(length >> 8)};
  if (major > 1) file += {0, 0};
  return (file += dict) += content;
}
std::string npy_of(std::string_view descr, std::string_view shape, std::string_view content) {
  return npy("{'descr': '" + std::string(descr) + "', 'fortran_order': False, 'shape': " + std::string(shape) + ", }", content);
}

template <class... Numbers>
std::string numbers(Numbers... values) {
  std::string result;
  (result.append(reinterpret_cast<const char*>(&values), sizeof values), ...);
  return result;
}

/// A zip archive with one member as the oldest writers make it, without zip64.
struct Zip {
  std::string name = "a.npy", content = npy_of("|u1", "(2,)", "xy"), stored = content;
  std::uint16_t flags = 0, method = 0;
  std::uint32_t checksum =
      static_cast<std::uint32_t>(::crc32_z(0, reinterpret_cast<const unsigned char*>(content.data()), content.size()));
  std::uint32_t content_bytes = static_cast<std::uint32_t>(content.size()), offset = 0;
  std::uint16_t copies = 1;  ///< entries of the directory

  std::string file() const {
    const auto sizes = numbers(checksum, static_cast<std::uint32_t>(stored.size()), content_bytes,
                               static_cast<std::uint16_t>(name.size()), std::uint16_t{0});
    const auto middle = numbers(std::uint16_t{20}, flags, method, std::uint32_t{0});
    const std::string local = "PK\3\4" + middle + sizes + name + stored;
    std::string directory;
    for (std::uint16_t i = 0; i < copies; ++i)
      directory += "PK\1\2" + numbers(std::uint16_t{20}) + middle + sizes +
                   numbers(std::uint16_t{0}, std::uint16_t{0}, std::uint16_t{0}, std::uint32_t{0}, offset) +
                   (i == 0 ? name : std::string(name.size() - 4, static_cast<char>('a' + i)) + ".npy");
    return local + directory + "PK\5\6" +
           numbers(std::uint32_t{0}, copies, copies, static_cast<std::uint32_t>(directory.size()),
                   static_cast<std::uint32_t>(local.size()), std::uint16_t{0});
  }
};

TEST_CASE("arrays that NumPy wrote are read with their values") {
  const test::Folder folder;
  const auto read = [&](std::string_view digits) { return read_npy(folder.write("a.npy", of_digits(digits))); };
  const auto fortran = read(test::big_fortran_npy);
  CHECK(fortran.shape == Shape{2, 3});
  CHECK(values_of<std::int32_t>(fortran) == std::vector<std::int32_t>{-2, -1, 0, 1, 2, 3});
  const auto doubles = read(test::doubles_npy);
  CHECK(doubles.dtype == Dtype::f64);
  CHECK(values_of<double>(doubles).front() == 1.5);
  const auto rounded = read_npy(folder.write("a.npy", of_digits(test::doubles_npy)), Dtype::f32);
  CHECK(values_of<float>(rounded) == std::vector<float>{1.5F, -INFINITY, 3.14159265F});
  CHECK_THROWS_AS(read_npy(folder / "a.npy", Dtype::f16), DtypeError);
  const auto scalar = read(test::scalar_npy);
  CHECK(scalar.shape == Shape{});
  CHECK(scalar.dtype == Dtype::boolean);
  CHECK(scalar.values<bool>()[0]);
  const auto halves = read(test::halves_npy);
  CHECK(halves.spec() == Spec{{2, 1}, Dtype::f16});
  CHECK(halves.bytes == std::vector<std::byte>{std::byte{0}, std::byte{0x3e}, std::byte{0}, std::byte{0xb4}});
}

TEST_CASE("archives that NumPy wrote are read with names and values") {
  const test::Folder folder;
  const auto deflated = read_npz(folder.write("a.npz", of_digits(test::deflated_npz)));
  REQUIRE(deflated.size() == 2);
  CHECK(deflated[0].name == "first");
  CHECK(deflated[0].shape == Shape{2, 2, 3});
  CHECK(values_of<std::int32_t>(deflated[0]) == std::vector<std::int32_t>{0, 4, 8, 2, 6, 10, 1, 5, 9, 3, 7, 11});
  CHECK(deflated[1].name == "labels");
  CHECK(values_of<std::int64_t>(deflated[1]) == std::vector<std::int64_t>{3, -1});
  const auto stored = read_npz(folder.write("b.npz", of_digits(test::stored_npz)));
  REQUIRE(stored.size() == 2);
  CHECK(values_of<std::int64_t>(stored[1]) == std::vector<std::int64_t>{INT64_MAX, 5});
  CHECK(stored[0].name == "w");
  CHECK(stored[1].name == "arr_0");
  CHECK(stored[0].spec() == Spec{{0, 4}, Dtype::f32});
  CHECK_THROWS_WITH(read_npz(folder / "a.npz", 63), Contains("a.npz") && Contains("\"labels.npy\": takes 16 bytes"));
}

TEST_CASE("every dtype and byte order of NumPy's is converted") {
  const test::Folder folder;
  const auto read = [&](std::string_view descr, const std::string& content) {
    return read_npy(folder.write("a.npy", npy_of(descr, "(1,)", content)));
  };
  const auto value = [&](std::string_view kind, auto number, auto expected) {
    auto little = numbers(number), big = std::string(little.rbegin(), little.rend());
    for (const auto& [order, bytes] : {std::pair{"<", little}, {"=", little}, {">", big}}) {
      const auto array = read(order + std::string(kind), bytes);
      CHECK(array.template values<decltype(expected)>()[0] == expected);
    }
  };
  value("i1", std::int8_t{-7}, std::int8_t{-7});
  value("u1", std::uint8_t{200}, std::uint8_t{200});
  value("i2", std::int16_t{-30000}, std::int32_t{-30000});
  value("u2", std::uint16_t{60000}, std::int32_t{60000});
  value("i4", std::int32_t{-2000000000}, std::int32_t{-2000000000});
  value("u4", std::uint32_t{4000000000}, std::int64_t{4000000000});
  value("i8", std::int64_t{-5000000000}, std::int64_t{-5000000000});
  value("u8", std::uint64_t{5000000000}, std::int64_t{5000000000});
  value("f4", 0.1F, 0.1F);
  value("f8", 0.1, 0.1);
  value("b1", true, true);
  CHECK_THROWS_WITH(read("<u8", numbers(UINT64_MAX)), Contains("a.npy: of dtype u8 holds a value that is not i64"));
  CHECK_THROWS_WITH(read("|b1", "\2"), Contains("holds a value that is not bool"));
}

TEST_CASE("a .npy file that is not one says why") {
  const test::Folder folder;
  const auto fault = [&](const std::string& content) {
    const auto path = folder.write("bad.npy", content);
    try {
      read_npy(path);
    } catch (const FileError& error) {
      const std::string text = error.what();
      CHECK(text.starts_with(path.string() + ": "));
      CHECK(text.find('\n') == std::string::npos);
      return text;
    }
    return std::string("read");
  };
  CHECK_THAT(fault(""), Contains("too short"));
  CHECK_THAT(fault("PK\3\4 not at all"), Contains("another magic number"));
  CHECK_THAT(fault(npy("{}", "", 4)), Contains("version 4.0"));
  CHECK_THAT(fault(npy("{}", "").substr(0, 9)), Contains("ends within its header"));
  CHECK_THAT(fault(std::string("\x93NUMPY\1\0\xff\xff{}", 12)), Contains("65535 bytes, expected at most 2"));
  CHECK_THAT(fault(npy("{}", "")), Contains("no 'descr'"));
  CHECK_THAT(fault(npy("{'descr': '<f4', 'shape': ()}", "abcd")), Contains("no 'fortran_order'"));
  CHECK_THAT(fault(npy("{'descr': '<f4', 'descr': '<f4'}", "")), Contains("\"descr\" twice"));
  CHECK_THAT(fault(npy("{'other': 1}", "")), Contains("unknown key \"other\""));
  CHECK_THAT(fault(npy("{'fortran_order': 1}", "")), Contains("expected True or False"));
  CHECK_THAT(fault(npy("{'descr", "")), Contains("a text with an end"));
  CHECK_THAT(fault(npy("{'descr': '<f4'} x", "")), Contains("its end"));
  CHECK_THAT(fault(npy_of("|O", "(1,)", "12345678")), Contains("Python objects"));
  CHECK_THAT(fault(npy_of("<c8", "(1,)", "12345678")), Contains("dtype \"<c8\" is not supported"));
  CHECK_THAT(fault(npy_of("", "(1,)", "12345678")), Contains("dtype \"\" is not supported"));
  CHECK_THAT(fault(npy("{'descr': [('a', '<f4')]}", "")), Contains("records"));
  CHECK_THAT(fault(npy_of("<f4", "(-1, 4)", "")), Contains("extent -1"));
  CHECK_THAT(fault(npy_of("<f4", "(65536, 65536)", "")), Contains("more than 2147483647 elements"));
  CHECK_THAT(fault(npy_of("<f4", "(0, 3000000000)", "")), Contains("more than 2147483647 elements"));
  CHECK_THAT(fault(npy_of("<f4", "(99999999999999999999,)", "")), Contains("out of range"));
  CHECK_THAT(fault(npy_of("<f4", "(x,)", "")), Contains("expected an extent"));
  CHECK_THAT(fault(npy_of("<f4", "(2,", "")), Contains("expected"));
  std::string deep = "(";
  for (int i = 0; i < 65; ++i) deep += "1,";
  CHECK_THAT(fault(npy_of("|u1", deep + ")", "x")), Contains("more than 64 dimensions"));
  CHECK_THAT(fault(npy_of("<f4", "(2,)", "1234")), Contains("takes 8 bytes, but no more than 4 follow"));
  CHECK_THAT(fault(npy_of("<f4", "(1,)", "12345")), Contains("goes on behind its 4 bytes"));
  CHECK_THROWS_AS(read_npy(folder / "none.npy"), FileError);
}

TEST_CASE("a .npz file that is not one says why") {
  const test::Folder folder;
  const auto fault = [&](const std::string& content) {
    const auto path = folder.write("bad.npz", content);
    try {
      return std::to_string(read_npz(path).size()) + " arrays";
    } catch (const FileError& error) {
      const std::string text = error.what();
      CHECK(text.starts_with(path.string() + ": "));
      CHECK(text.find('\n') == std::string::npos);
      return text;
    }
  };
  CHECK(fault(Zip().file()) == "1 arrays");
  CHECK_THAT(fault("PK"), Contains("too short"));
  CHECK_THAT(fault(std::string(100, 'x')), Contains("no directory at its end"));
  CHECK_THAT(fault(Zip().file() + "x"), Contains("no directory at its end"));
  CHECK_THAT(fault(Zip{.name = "a.txt"}.file()), Contains("\"a.txt\": is no array"));
  CHECK_THAT(fault(Zip{.flags = 1}.file()), Contains("is encrypted"));
  CHECK_THAT(fault(Zip{.method = 12}.file()), Contains("method 12"));
  CHECK_THAT(fault(Zip{.checksum = 1}.file()), Contains("\"a.npy\": is damaged: its check sum"));
  CHECK_THAT(fault(Zip{.content_bytes = 9}.file()), Contains("9 bytes cannot be the content"));
  CHECK_THAT(fault(Zip{.offset = 5}.file()), Contains("not where the directory says"));
  CHECK_THAT(fault(Zip{.offset = 4000}.file()), Contains("outside of the file"));
  CHECK_THAT(fault(Zip{.copies = 2}.file()), Contains("share bytes"));
  // A small file that claims a lot: deflate could not make it of so few bytes.
  CHECK_THAT(fault(Zip{.method = 8, .content_bytes = 1'000'000'000}.file()), Contains("cannot be the content"));
  CHECK_THAT(fault(Zip{.method = 8}.file()), Contains("damaged deflated data") || Contains("end too early"));
  // One that expands to more than its directory says, and one to less.
  auto whole = of_digits(test::deflated_npz);
  const auto entry = whole.find("PK\1\2");
  for (const int by : {-1, 1}) {
    auto other = whole;
    other[entry + 24] = static_cast<char>(other[entry + 24] + by);
    CHECK_THAT(fault(other), Contains("its shape") || Contains("deflated data"));
  }
  for (std::size_t length = 1; length < whole.size(); length += 7)
    CHECK_THAT(fault(whole.substr(0, length)), !Contains(" arrays"));
  // Any byte changed is an error or harmless, as of times; values behind a check sum do not change unseen.
  for (std::size_t at = 0; at < whole.size(); ++at) {
    auto changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ 0x41);
    fault(changed);
  }
}

TEST_CASE("the acceptance data's sound .npy files are read, the others are not") {
  const auto bad = test::acceptance("bad");
  if (!bad) return;
  const auto manifest = nlohmann::json::parse(std::ifstream(*bad / "manifest.json"));
  int seen = 0;
  for (const auto& entry : manifest["cases"]) {
    if (entry["kind"] != "npy") continue;
    ++seen;
    const auto path = *bad / entry["path"].get<std::string>();
    INFO(path);
    if (entry["expect"] == "error")
      CHECK_THROWS_WITH(read_npy(path), Catch::StartsWith(path.string() + ": "));
    else
      CHECK(read_npy(path).shape.numel() > 0);
  }
  CHECK(seen > 0);
}

TEST_CASE("arrays become a dataset") {
  const Array pictures(std::vector<std::uint8_t>{0, 255, 51, 102}, Shape{2, 2});
  const auto set = from_arrays(pictures, Array(std::vector<std::int64_t>{2, 0}, Shape{2}));
  CHECK(set.classes == 3);
  CHECK(values_of<float>(set.get(1, 0)[0]) == std::vector<float>{51.0F / 255, 102.0F / 255});
  CHECK(set.get(0, 0)[1].values<std::int32_t>()[0] == 2);
  CHECK(from_arrays(pictures, Array(std::vector<std::int64_t>{2, 0}, Shape{2}), 10).classes == 10);
  const auto numbers =
      from_arrays(Array(std::vector<std::int32_t>{1, 2}, Shape{2}), Array(std::vector<float>{.5F, 1}, Shape{2, 1}));
  CHECK(numbers.target_shape == Shape{1});
  CHECK(numbers.floats == std::vector<float>{1, 2});
  CHECK_THROWS_WITH(from_arrays(pictures, Array(std::vector<float>{1}, Shape{1})), Contains("2 samples and 1 answers"));
  CHECK_THROWS_WITH(from_arrays(Array(1.0F), pictures), Contains("the samples are one number"));
  CHECK_THROWS_WITH(from_arrays(pictures, Array(std::vector<std::int64_t>{1, std::int64_t{1} << 40}, Shape{2})),
                    Contains("label 1099511627776 is out of range"));
}

}  // namespace
}  // namespace clnet::data
