// Checkpoints of PyTorch in host memory: what PyTorch wrote, and damage of every kind.
#include "tests/unit/torch_files.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <sstream>
#include <string>

#include "clnet/error.h"
#include "clnet/io.h"
#include "lib/io/state_files.h"
#include "lib/io/zip.h"
#include "tests/support/temporary.h"

namespace clnet::io {
namespace {

using Catch::Contains;

std::string from_digits(std::string_view digits) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2)
    bytes += static_cast<char>(std::stoi(std::string(digits.substr(i, 2)), nullptr, 16));
  return bytes;
}

std::vector<data::Array> read_all(const std::filesystem::path& path, std::string_view key = {}) {
  std::vector<data::Array> arrays;
  read_torch(path, key, [&](std::size_t place, data::Array array) {
    if (arrays.size() <= place) arrays.resize(place + 1);
    arrays[place] = std::move(array);
  });
  return arrays;
}

template <class T>
std::vector<T> elements_of(const data::Array& array) {
  std::vector<T> out(array.bytes.size() / sizeof(T));
  std::memcpy(out.data(), array.bytes.data(), array.bytes.size());
  return out;
}

template <class T>
std::string raw(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

// ---- Instructions of pickles

template <class T>
std::string with(char code, T number) {
  return code + std::string(reinterpret_cast<const char*>(&number), sizeof number);
}
std::string text(std::string_view content) {
  return with('X', static_cast<std::uint32_t>(content.size())) + std::string(content);
}
std::string integer(std::int32_t number) { return with('J', number); }
std::string integers(const std::vector<std::int32_t>& numbers) {
  std::string out = "(";
  for (const auto number : numbers) out += integer(number);
  return out + "t";
}
std::string global(std::string_view module, std::string_view name) {
  return "c" + std::string(module) + "\n" + std::string(name) + "\n";
}
std::string storage(std::int32_t elements, std::string_view kind = "FloatStorage", std::string_view key = "0") {
  return "(" + text("storage") + global("torch", kind) + text(key) + text("cpu") + integer(elements) + "tQ";
}
struct Strided {
  std::vector<std::int32_t> extents{2}, strides{1};
  std::int32_t offset = 0;
};
std::string tensor(const std::string& its_storage, const Strided& at = {}) {
  return global("torch._utils", "_rebuild_tensor_v2") + "(" + its_storage + integer(at.offset) + integers(at.extents) +
         integers(at.strides) + "\x89" + global("collections", "OrderedDict") + ")RtR";
}
std::string dict(const std::string& items) { return "}(" + items + "u"; }
std::string pickle(const std::string& body) { return "\x80\x02" + body + "."; }

struct Checkpoint {
  std::string pickle, data = raw(std::vector<float>{1, 2}), version = "3\n", byteorder = "little", folder = "archive/";
  bool deflated = false, has_data = true;

  std::string file() const {
    std::ostringstream out;
    ZipWriter zip(out, deflated);
    zip.add(folder + "data.pkl", pickle);
    if (!byteorder.empty()) zip.add(folder + "byteorder", byteorder);
    if (has_data) zip.add(folder + "data/0", data);
    if (!version.empty()) zip.add(folder + "version", version);
    zip.finish();
    return out.str();
  }
};

/// What read_torch() says of a file, behind its path.
class Faults {
 public:
  std::string of(const std::string& content, std::string_view key = {}) const {
    const auto path = folder_.write("bad.pt", content);
    try {
      std::size_t count = 0;
      read_torch(path, key, [&](std::size_t, const data::Array&) { ++count; });
      return std::to_string(count) + " tensors";
    } catch (const FileError& error) {
      const std::string said = error.what();
      CHECK(said.starts_with(path.string() + ": "));
      CHECK(said.find('\n') == std::string::npos);
      CHECK(said.size() < 600);
      return said;
    }
  }
  std::string of_pickle(const std::string& body, std::string_view key = {}) const {
    return of(Checkpoint{.pickle = pickle(body)}.file(), key);
  }
  std::string of_checkpoint(const Checkpoint& checkpoint) const { return of(checkpoint.file()); }

 private:
  test::Folder folder_;
};

const std::string sound = pickle(dict(text("w") + tensor(storage(2))));

TEST_CASE("state dicts that PyTorch wrote are read with their values") {
  const test::Folder folder;
  const auto linear = read_all(folder.write("a.pt", from_digits(test::linear_pt)));
  REQUIRE(linear.size() == 2);
  CHECK(linear[0].name == "weight");
  CHECK(linear[0].spec() == Spec{{1, 2}, Dtype::f32});
  CHECK(elements_of<float>(linear[0]) == std::vector<float>{.5F, -1});
  CHECK(linear[1].name == "bias");
  CHECK(elements_of<float>(linear[1]) == std::vector<float>{2});

  const auto path = folder.write("b.pt", from_digits(test::nested_pt));
  const auto all = read_all(path), below = read_all(path, "model");
  REQUIRE(all.size() == 6);
  REQUIRE(below.size() == 6);
  CHECK(all[0].name == "model.w");
  CHECK(below[0].name == "w");
  CHECK(below[0].spec() == Spec{{3, 2}, Dtype::f32});
  CHECK(elements_of<float>(below[0]) == std::vector<float>{0, 3, 1, 4, 2, 5});
  CHECK(elements_of<float>(below[1]) == std::vector<float>{3, 4, 5});
  CHECK(below[2].dtype == Dtype::f16);
  CHECK(elements_of<std::uint16_t>(below[2]) == std::vector<std::uint16_t>{0x3e00, 0xc000});
  CHECK(below[3].dtype == Dtype::bf16);
  CHECK(elements_of<std::uint16_t>(below[3]) == std::vector<std::uint16_t>{0x4040});
  CHECK(below[4].spec() == Spec{{}, Dtype::i64});
  CHECK(elements_of<std::int64_t>(below[4]) == std::vector<std::int64_t>{7});
  CHECK(below[5].dtype == Dtype::boolean);
  CHECK(elements_of<std::uint8_t>(below[5]) == std::vector<std::uint8_t>{1, 0});
  CHECK_THROWS_WITH(read_all(path, "models"),
                    Contains("has no tensor below \"models\"; the first keys are \"model\", \"epoch\""));
}

TEST_CASE("tensors of every dtype come back from a file as they were") {
  const test::Folder folder;
  std::vector<data::Array> arrays;
  for (const auto dtype :
       {Dtype::f32, Dtype::f16, Dtype::bf16, Dtype::f64, Dtype::i32, Dtype::i64, Dtype::i8, Dtype::u8, Dtype::boolean}) {
    data::Array array({2, 3}, dtype, "of." + std::string(to_string(dtype)));
    for (std::size_t i = 0; i < array.bytes.size(); ++i)
      array.bytes[i] = static_cast<std::byte>(dtype == Dtype::boolean ? i % 2 : 7 * i + 1);
    arrays.push_back(array);
  }
  arrays.emplace_back(Shape{}, Dtype::f32, "scalar");
  arrays.emplace_back(Shape{0, 4}, Dtype::f32, "none");
  const auto same = [&](const std::vector<data::Array>& got) {
    REQUIRE(got.size() == arrays.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      INFO(arrays[i].name);
      CHECK(got[i].name == arrays[i].name);
      CHECK(got[i].spec() == arrays[i].spec());
      CHECK(got[i].bytes == arrays[i].bytes);
    }
  };
  const auto state = written_state("a test", arrays);
  write_torch(folder / "a.pt", state);
  same(read_all(folder / "a.pt"));
  write_safetensors(folder / "a.safetensors", state, {});
  std::vector<data::Array> got(arrays.size());
  const ArraySink sink = [&](std::size_t place, data::Array array) { got[place] = std::move(array); };
  read_safetensors(folder / "a.safetensors", sink);
  same(got);
  // The same tensors give the same bytes.
  write_torch(folder / "b.pt", state);
  CHECK(test::content(folder / "a.pt") == test::content(folder / "b.pt"));
  arrays.push_back(arrays[0]);
  CHECK_THROWS_WITH(written_state("a test", arrays), Contains("a test: tensor \"of.f32\" is given twice"));
}

TEST_CASE("views, shared storages and wide integers are read as values") {
  const test::Folder folder;
  const auto read = [&](const std::string& body, const std::string& data) {
    return read_all(folder.write("a.pt", Checkpoint{.pickle = pickle(body), .data = data}.file()));
  };
  const auto six = raw(std::vector<float>{0, 1, 2, 3, 4, 5});
  const auto shared = read(dict(text("a") + tensor(storage(6), {{3, 2}, {1, 3}}) + text("b") + tensor(storage(6), {{2}, {1}, 4}) +
                                text("c") + tensor(storage(6), {{2, 3}, {0, 1}, 3})),
                           six);
  REQUIRE(shared.size() == 3);
  CHECK(elements_of<float>(shared[0]) == std::vector<float>{0, 3, 1, 4, 2, 5});
  CHECK(elements_of<float>(shared[1]) == std::vector<float>{4, 5});
  CHECK(elements_of<float>(shared[2]) == std::vector<float>{3, 4, 5, 3, 4, 5});
  const auto shorts = read(dict(text("a") + tensor(storage(2, "ShortStorage"))), raw(std::vector<std::int16_t>{-3, 4}));
  CHECK(elements_of<std::int32_t>(shorts[0]) == std::vector<std::int32_t>{-3, 4});
  const auto typed = [&](std::string_view dtype) {
    const auto untyped =
        "(" + text("storage") + global("torch.storage", "UntypedStorage") + text("0") + text("cpu") + integer(16) + "tQ";
    return dict(text("a") + global("torch._utils", "_rebuild_tensor_v3") + "(" + untyped + integer(0) + integers({2}) +
                integers({1}) + "\x89" + global("collections", "OrderedDict") + ")R" + global("torch", dtype) + "}tR");
  };
  const auto wide = read(typed("uint64"), raw(std::vector<std::uint64_t>{5, 9}));
  CHECK(elements_of<std::int64_t>(wide[0]) == std::vector<std::int64_t>{5, 9});
  CHECK_THROWS_WITH(read(typed("uint64"), raw(std::vector<std::uint64_t>{5, UINT64_MAX})),
                    Contains("tensor \"a\": of dtype uint64, holds a value that is not i64"));
  CHECK_THROWS_WITH(read(dict(text("a") + tensor(storage(2, "BoolStorage"))), "\1\2"),
                    Contains("holds a value that is not bool"));
}

TEST_CASE("nested dicts, lists, memos and newer pickles are read") {
  const Faults faults;
  CHECK(faults.of_pickle(dict(text("a") + "](" + tensor(storage(2)) + "K\1e" + integer(7) + tensor(storage(2)))) == "2 tensors");
  CHECK(faults.of_pickle(dict(text("a") + tensor(storage(2)) + "q\1" + text("b") + "h\1")) == "2 tensors");
  CHECK(faults.of_pickle(tensor(storage(2))) == "1 tensors");
  CHECK(faults.of_pickle("}") == "0 tensors");
  CHECK(faults.of_pickle("N") == "0 tensors");
  // Attributes of a dict, a number that no integer holds, None, True, a float and bytes.
  CHECK(faults.of_pickle(global("collections", "OrderedDict") + ")R}b") == "0 tensors");
  CHECK(faults.of_pickle("](\x8a\x09" + std::string(9, '\x7f') + "N\x88G" + std::string(8, 'x') + "C\2abe") == "0 tensors");
  CHECK(
      faults.of(Checkpoint{.pickle = "\x80\x04\x95" + std::string(8, '\0') + "}\x94(\x8c\1w\x94" + tensor(storage(2)) + "\x94u."}
                    .file()) == "1 tensors");
}

TEST_CASE("a pickle that is no state dict is refused by one line, and nothing of it runs") {
  const Faults faults;
  const auto calls = global("os", "system") + text("touch here") + "\x85R";
  CHECK_THAT(faults.of_pickle(calls), Contains("refers to \"os\".\"system\", which no state dict needs"));
  CHECK_THAT(faults.of_pickle(text("posix") + text("system") + "\x93" + text("ls") + "\x85R"), Contains("\"posix\".\"system\""));
  CHECK_THAT(faults.of_pickle(global("builtins", "eval") + text("1") + "\x85R"), Contains("\"builtins\".\"eval\""));
  CHECK_THAT(faults.of_pickle(global("torch", "ComplexFloatStorage")), Contains("\"torch\".\"ComplexFloatStorage\""));
  CHECK_THAT(faults.of_pickle(global("a\x1b[0m", "b")), Contains("refers to ") && !Contains("\x1b"));
  CHECK_THAT(faults.of_pickle(global("torch", "FloatStorage") + ")R"), Contains("calls a class that state dicts only name"));
  CHECK_THAT(faults.of_pickle(text("x") + ")R"), Contains("is no function"));
  CHECK_THAT(faults.of_pickle("(i os\nsystem\n"), Contains("the opcode 0x69 at byte 3"));
  CHECK_THAT(faults.of_pickle(")\x81"), Contains("the opcode 0x81"));
  CHECK_THAT(faults.of_pickle("2"), Contains("the opcode 0x32"));
  CHECK_THAT(faults.of_pickle("\x80\x09"), Contains("version 9 of Python's format"));
  CHECK_THAT(faults.of_pickle("0"), Contains("takes a value"));
  CHECK_THAT(faults.of_pickle("u"), Contains("ends a group"));
  CHECK_THAT(faults.of_pickle(""), Contains("ends with 0 values"));
  CHECK_THAT(faults.of_pickle("NN"), Contains("ends with 2 values"));
  CHECK_THAT(faults.of_pickle("(N"), Contains("ends with 1 values"));
  CHECK_THAT(faults.of_pickle("}Na"), Contains("needs a list"));
  CHECK_THAT(faults.of_pickle("}(Nu"), Contains("a key without a value"));
  CHECK_THAT(faults.of_pickle("h\5"), Contains("asks for value 5"));
  CHECK_THAT(faults.of_pickle("NQ"), Contains("no storage of PyTorch"));
  CHECK_THAT(faults.of_pickle("X\xff\xff\xff\xff"), Contains("within an instruction"));
  CHECK_THAT(faults.of_pickle("\x8d" + std::string(8, '\xff')), Contains("within an instruction"));
  CHECK_THAT(faults.of_pickle("cos"), Contains("ends within the name of a global"));
  CHECK_THAT(faults.of_pickle(dict(")" + tensor(storage(2)))), Contains("whose key is neither"));
}

TEST_CASE("tensors that do not fit their storage are refused") {
  const Faults faults;
  const auto fault = [&](const std::string& its_storage, const Strided& at) {
    return faults.of_pickle(dict(text("w") + tensor(its_storage, at)));
  };
  CHECK(fault(storage(2), {{2}, {1}}) == "1 tensors");
  CHECK_THAT(fault(storage(2), {{3}, {1}}), Contains("tensor \"w\" reaches behind the 2 elements of its storage"));
  CHECK_THAT(fault(storage(2), {{2}, {1}, 1}), Contains("reaches behind"));
  CHECK_THAT(fault(storage(2), {{2}, {2147483647}}), Contains("reaches behind"));
  CHECK_THAT(fault(storage(2), {{}, {}, 2}), Contains("reaches behind"));
  CHECK_THAT(fault(storage(2), {{1}, {1}, -1}), Contains("begins at element -1"));
  CHECK_THAT(fault(storage(2), {{-1}, {1}}), Contains("no number from 0"));
  CHECK_THAT(fault(storage(2), {{2}, {-1}}), Contains("no number from 0"));
  CHECK_THAT(fault(storage(2), {{2, 1}, {1}}), Contains("2 extents and 1 strides"));
  CHECK_THAT(fault(storage(2), {{65536, 65536}, {0, 0}}), Contains("more than 2147483647 elements"));
  CHECK_THAT(fault(storage(2), {{0, 65536, 65536}, {0, 0, 0}}), Contains("more than 2147483647 elements"));
  CHECK_THAT(fault(storage(2), {std::vector<std::int32_t>(65, 1), std::vector<std::int32_t>(65, 1)}), Contains("65 extents"));
  CHECK_THAT(fault(storage(-2), {}), Contains("no storage of PyTorch"));
  CHECK_THAT(fault(storage(3), {}), Contains("its storage has 8 bytes, expected 12"));
  CHECK_THAT(fault(storage(2, "FloatStorage", "1"), {}), Contains("\"archive/data/1\" are not in the archive"));
  CHECK_THAT(fault(storage(2, "FloatStorage", "../data.pkl"), {}), Contains("are not in the archive"));
  CHECK_THAT(fault("N", {}), Contains("other arguments than a storage"));
  const auto with_metadata = [&](const std::string& metadata) {
    auto of = tensor(storage(2));
    return faults.of_pickle(dict(text("w") + of.insert(of.size() - 2, metadata)));
  };
  CHECK(with_metadata("N") == "1 tensors");
  CHECK(with_metadata("}") == "1 tensors");
  CHECK_THAT(with_metadata(dict(text("neg") + "\x88")), Contains("tensor \"w\" has metadata, as a negated"));
  CHECK_THAT(faults.of_pickle(dict(text("a.b") + tensor(storage(2)) + text("a") + dict(text("b") + tensor(storage(2))))),
             Contains("has the tensor \"a.b\" twice"));
}

TEST_CASE("little files that would take much memory or time are refused") {
  const Faults faults;
  // An element as two billion.
  CHECK_THAT(faults.of_pickle(dict(text("w") + tensor(storage(2), {{2000000000}, {0}}))), Contains("take more than"));
  // Many views of one storage, each of a size that would do.
  std::string views;
  for (int i = 0; i < 40; ++i) views += text("w" + std::to_string(i)) + tensor(storage(2), {{1000000}, {0}});
  CHECK_THAT(faults.of_pickle(dict(views)), Contains("take more than"));
  // Zeros that deflate well: as much as eight times the file and 128 MiB, and more.
  Checkpoint zeros{.pickle = pickle(dict(text("w") + tensor(storage(1 << 20), {{1 << 20}, {1}}))), .deflated = true};
  zeros.data = std::string(std::size_t{4} << 20, '\0');
  CHECK(faults.of_checkpoint(zeros) == "1 tensors");
  zeros.pickle = pickle(dict(text("w") + tensor(storage(50 << 20), {{1}, {1}})));
  zeros.data = std::string(std::size_t{200} << 20, '\0');
  CHECK_THAT(faults.of_checkpoint(zeros), Contains("take more than"));
  // A pickle that deflates well.
  CHECK_THAT(faults.of_checkpoint({.pickle = std::string(std::size_t{33} << 20, 'N'), .deflated = true}),
             Contains("expected at most 33554432"));
  // Nested, by groups and by dicts.
  CHECK_THAT(faults.of_pickle(std::string(100000, '(')), Contains("nested more than 1000 deep"));
  std::string deep = "N";
  for (int i = 0; i < 40; ++i) deep += "\x85";
  CHECK_THAT(faults.of_pickle(deep), Contains("nested more than 32 deep"));
  // A list that holds itself.
  CHECK_THAT(faults.of_pickle("]q\1h\1a"), Contains("nested more than 32 deep"));
  // Two of the last, and two of that: 2^31 values.
  std::string doubled = "(]";
  for (char i = 1; i < 32; ++i) doubled += std::string("q") + i + "(h" + i + "h" + i + "t";
  CHECK_THAT(faults.of_pickle(doubled + "q\x20" + "1h\x20"), Contains("more than 4194304 values"));
  CHECK_THAT(faults.of_pickle(with('r', std::uint32_t{0xffffffff})), Contains("remembers value 4294967295 of at most"));
  CHECK_THAT(faults.of_pickle("N" + with('r', std::uint32_t{1 << 20})), Contains("remembers value"));
  CHECK_THAT(faults.of_pickle(std::string(3 << 20, 'N')), Contains("more than 2097152 values"));
  CHECK_THAT(faults.of_pickle(dict(text(std::string(5000, 'x')) + tensor(storage(2)))), Contains("at most 4096 bytes"));
}

TEST_CASE("archives that are no checkpoint say why") {
  const Faults faults;
  CHECK(faults.of_checkpoint({.pickle = sound}) == "1 tensors");
  CHECK(faults.of_checkpoint({.pickle = sound, .byteorder = "", .folder = "renamed/"}) == "1 tensors");
  CHECK_THAT(faults.of(""), Contains("too short"));
  CHECK_THAT(faults.of("not a zip archive"), Contains("no zip archive"));
  CHECK_THAT(faults.of("\x80\x02\x8a\x0al\xfc\x9c"
                       "F\xf9 j\xa8P\x19.\x80\x02M\xe9\x03."),
             Contains("from before 1.6; save it again: torch.save(torch.load(FILE, weights_only=True), FILE)"));
  CHECK_THAT(faults.of_checkpoint({.pickle = sound, .byteorder = "big"}), Contains("the byte order \"big\", expected little"));
  CHECK_THAT(faults.of_checkpoint({.pickle = sound, .version = "11\n"}), Contains("of version \"11\" of PyTorch's archives"));
  CHECK_THAT(faults.of_checkpoint({.pickle = sound, .version = "x"}), Contains("of version \"x\""));
  CHECK_THAT(faults.of_checkpoint({.pickle = sound, .version = ""}), Contains("has no version"));
  CHECK_THAT(faults.of_checkpoint({.pickle = sound, .folder = ""}), Contains("has no data.pkl"));
  CHECK_THAT(faults.of_checkpoint({.pickle = sound, .has_data = false}), Contains("are not in the archive"));
  CHECK_THROWS_AS(read_all("no_such_file.pt"), FileError);
}

TEST_CASE("a checkpoint that is cut or changed anywhere is refused or harmless") {
  const Faults faults;
  const auto whole = from_digits(test::linear_pt), deflated = from_digits(test::nested_pt);
  for (const auto& file : {whole, deflated}) {
    for (std::size_t length = 0; length < file.size(); ++length)
      CHECK_THAT(faults.of(file.substr(0, length)), !Contains(" tensors"));
    for (std::size_t at = 0; at < file.size(); ++at) {
      auto changed = file;
      changed[at] = static_cast<char>(changed[at] ^ 0x41);
      faults.of(changed);
    }
  }
  // Behind the check sum: each prefix and each change of a pickle.
  for (std::size_t length = 0; length < sound.size(); ++length)
    CHECK_THAT(faults.of_checkpoint({.pickle = sound.substr(0, length)}), !Contains(" tensors"));
  for (std::size_t at = 0; at < sound.size(); ++at)
    for (const int by : {1, 0x41, 0xff}) {
      auto changed = sound;
      changed[at] = static_cast<char>(changed[at] ^ by);
      faults.of_checkpoint({.pickle = changed});
    }
}

TEST_CASE("weights are loaded and saved by the ending of their file") {
  CHECK_THROWS_WITH(load_state("model.onnx"), Contains("the ending \".onnx\" names no format"));
  CHECK_THROWS_WITH(save_state("model", {}), Contains("names no format"));
  CHECK_THROWS_WITH(load_state("no_such_file.pth"), Contains("no_such_file.pth"));
}

}  // namespace
}  // namespace clnet::io
