// Checkpoints of PyTorch (torch.save): a zip archive with a pickle, which names the tensors, and a member for each storage.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <ostream>

#include "clnet/error.h"
#include "clnet/io.h"
#include "lib/base/file.h"
#include "lib/base/input_file.h"
#include "lib/io/state_files.h"
#include "lib/io/torch_pickle.h"
#include "lib/io/zip.h"

namespace clnet::io {
namespace {

constexpr std::uint64_t most_pickle_bytes = std::uint64_t{32} << 20, most_note_bytes = 64;
constexpr int newest_torch_format = 10;  ///< of the archive, as PyTorch reads it; it writes 3
/// Tensors of small storages with large extents, and deflated zeros, take no more memory than this and `most_growth` times the
/// file.
constexpr std::uint64_t most_small_bytes = std::uint64_t{128} << 20, most_growth = 8;
constexpr std::uint64_t storage_alignment = 64;  ///< as PyTorch has it, so that the file can be mapped
constexpr std::string_view pickle_name = "/data.pkl";

class TorchFile {
 public:
  explicit TorchFile(const std::filesystem::path& path) : file_(path) {
    refuse_other_formats();
    for (auto& member : zip_members(file_)) members_.emplace(member.name, member);
    for (const auto& [name, member] : members_)
      if (name.ends_with(pickle_name) && name.find('/') == name.size() - pickle_name.size()) {
        if (!folder_.empty()) file_.fail("has two members data.pkl");
        folder_ = name.substr(0, name.find('/') + 1);
      }
    if (folder_.empty()) file_.fail("is no checkpoint of PyTorch: its archive has no data.pkl");
    if (members_.contains(folder_ + "constants.pkl"))
      file_.fail("is a program of TorchScript; save its state_dict() by torch.save()");
    const auto order = note("byteorder");
    if (order && *order != "little") file_.fail(fmt::format("has the byte order {}, expected little", in_quotes(*order)));
    const auto version = note("version");
    if (!version) file_.fail("is no checkpoint of PyTorch: its archive has no version");
    if (version->empty() || version->size() > 2 || version->find_first_not_of("0123456789") != std::string::npos ||
        std::stoi(*version) < 1 || std::stoi(*version) > newest_torch_format)
      file_.fail(
          fmt::format("is of version {} of PyTorch's archives, expected 1 to {}", in_quotes(*version), newest_torch_format));
  }

  std::size_t read(std::string_view key, const ArraySink& sink) const {
    const auto pickle = content(members_.at(folder_ + "data.pkl"), most_pickle_bytes);
    PickledState state;
    try {
      state = read_state_pickle({pickle.data(), pickle.size()}, key);
    } catch (const PickleFault& fault) {
      file_.fail(fault.what());
    }
    // Storage by storage, in the order of their first tensors.
    std::vector<std::string_view> order;
    std::map<std::string_view, std::vector<std::size_t>> users;
    const auto most = most_small_bytes + most_growth * file_.size();
    std::uint64_t bytes = 0;
    for (std::size_t i = 0; i < state.tensors.size(); ++i) {
      const auto& tensor = state.tensors[i];
      auto& of_storage = users[tensor.storage];
      if (of_storage.empty()) {
        order.push_back(tensor.storage);
        bytes += tensor.storage_bytes;
      }
      of_storage.push_back(i);
      const auto taken = static_cast<std::uint64_t>(Shape(tensor.extents).numel()) * size_of(tensor.type->stored_as);
      if (tensor.storage_bytes > most || bytes > most - std::min(most, taken))
        file_.fail(fmt::format("tensor {}: the tensors take more than {} bytes of memory, {} MiB and {} times the file",
                               in_quotes(tensor.name), most, most_small_bytes >> 20, most_growth));
      bytes += taken;
      require_storage(tensor);
    }
    for (const auto& storage : order) {
      const auto& places = users[storage];
      const auto stored = content(members_.at(member_of(storage)), most);
      for (const auto place : places) sink(place, array_of(state.tensors[place], stored));
    }
    return state.others;
  }

 private:
  void refuse_other_formats() const {
    char start[2] = {};
    if (file_.size() < sizeof start) file_.fail("is too short for a checkpoint of PyTorch");
    file_.read_at(0, start, sizeof start);
    if (start[0] == 'P' && start[1] == 'K') return;
    // Before PyTorch 1.6 pickles stood one behind the other.
    if (start[0] == '\x80')
      file_.fail("is in PyTorch's format from before 1.6; save it again: torch.save(torch.load(FILE, weights_only=True), FILE)");
    file_.fail("is no checkpoint of PyTorch: it is no zip archive");
  }
  /// The text of a small member; none: there is no such member.
  std::optional<std::string> note(std::string_view name) const {
    const auto found = members_.find(folder_ + std::string(name));
    if (found == members_.end()) return std::nullopt;
    const auto bytes = content(found->second, most_note_bytes);
    std::string text(bytes.begin(), bytes.end());
    while (!text.empty() && text.back() == '\n') text.pop_back();
    return text;
  }
  std::vector<char> content(const ZipMember& member, std::uint64_t most) const {
    if (member.content > most)
      file_.fail(fmt::format("{} has {} bytes, expected at most {}", in_quotes(member.name), member.content, most));
    ZipReader reader(file_, member);
    std::vector<char> bytes(static_cast<std::size_t>(member.content));
    reader.read(bytes.data(), bytes.size());
    char extra = 0;
    reader.read(&extra, 1);  // checks the end
    return bytes;
  }
  std::string member_of(std::string_view storage) const { return fmt::format("{}data/{}", folder_, storage); }
  void require_storage(const PickledTensor& tensor) const {
    const auto found = members_.find(member_of(tensor.storage));
    if (found == members_.end())
      file_.fail(fmt::format("tensor {}: its data {} are not in the archive", in_quotes(tensor.name),
                             in_quotes(member_of(tensor.storage))));
    if (found->second.content != tensor.storage_bytes)
      file_.fail(fmt::format("tensor {}: its storage has {} bytes, expected {}", in_quotes(tensor.name), found->second.content,
                             tensor.storage_bytes));
  }

  data::Array array_of(const PickledTensor& tensor, const std::vector<char>& stored) const {
    const auto& type = *tensor.type;
    data::Array array(Shape(tensor.extents), type.stored_as, tensor.name);
    const auto count = static_cast<std::size_t>(array.shape.numel());
    if (count == 0) return array;
    const auto* begin = reinterpret_cast<const std::byte*>(stored.data()) + tensor.offset * type.bytes;
    const bool fits =
        is_contiguous(tensor) ? type.convert(begin, count, array.bytes.data()) : gather(tensor, begin, count, array.bytes.data());
    if (!fits)
      file_.fail(fmt::format("tensor {}: of dtype {}, holds a value that is not {}", in_quotes(tensor.name), type.dtype,
                             to_string(type.stored_as)));
    return array;
  }
  static bool is_contiguous(const PickledTensor& tensor) {
    std::int64_t stride = 1;
    for (auto d = tensor.extents.size(); d-- > 0;) {
      if (tensor.extents[d] != 1 && tensor.strides[d] != stride) return false;
      stride *= tensor.extents[d];
    }
    return true;
  }
  /// Elements in the order of their indices.
  static bool gather(const PickledTensor& tensor, const std::byte* begin, std::size_t count, std::byte* out) {
    const auto& type = *tensor.type;
    const auto rank = tensor.extents.size(), item = size_of(type.stored_as);
    std::vector<std::int64_t> at(rank, 0);
    std::int64_t place = 0;
    for (std::size_t i = 0; i < count; ++i, out += item) {
      if (!type.convert(begin + static_cast<std::size_t>(place) * type.bytes, 1, out)) return false;
      for (auto d = rank; d-- > 0;) {
        place += tensor.strides[d];
        if (++at[d] < tensor.extents[d]) break;
        place -= tensor.strides[d] * at[d];
        at[d] = 0;
      }
    }
    return true;
  }

  InputFile file_;
  std::string folder_;  ///< of all members, with a slash
  std::map<std::string, ZipMember> members_;
};

template <class T>
void append_number(std::string& out, char code, T number) {
  out += code;
  out.append(reinterpret_cast<const char*>(&number), sizeof number);
}
void append_text(std::string& out, std::string_view text) {
  append_number(out, 'X', static_cast<std::uint32_t>(text.size()));
  out += text;
}
void append_integer(std::string& out, std::int64_t number) {
  if (number <= std::numeric_limits<std::int32_t>::max()) return append_number(out, 'J', static_cast<std::int32_t>(number));
  append_number(out, '\x8a', std::uint8_t{sizeof number});
  out.append(reinterpret_cast<const char*>(&number), sizeof number);
}

void append_tuple(std::string& out, const std::vector<std::int64_t>& numbers) {
  out += '(';
  for (const auto number : numbers) append_integer(out, number);
  out += 't';
}

/// The dict of tensors as Python's pickle module writes it, without its memo. Storages are numbered in order.
std::string state_pickle(const WrittenState& state) {
  std::string out =
      "\x80\x02"
      "ccollections\nOrderedDict\n)R(";
  for (std::size_t i = 0; i < state.tensors.size(); ++i) {
    const auto& [name, spec] = state.tensors[i];
    append_text(out, name);
    out += "ctorch._utils\n_rebuild_tensor_v2\n((";
    append_text(out, "storage");
    out += fmt::format("ctorch\n{}\n", torch_type_of(spec.dtype).storage);
    append_text(out, std::to_string(i));
    append_text(out, "cpu");
    append_integer(out, spec.shape.numel());
    out += "tQ";
    append_integer(out, 0);
    const auto& extents = spec.shape.extents();
    std::vector<std::int64_t> strides(extents.size());
    std::int64_t stride = 1;
    for (auto d = extents.size(); d-- > 0; stride *= std::max<std::int64_t>(extents[d], 1)) strides[d] = stride;
    append_tuple(out, extents);
    append_tuple(out, strides);
    out += '\x89';  // requires_grad is False
    out += "ccollections\nOrderedDict\n)RtR";
  }
  return out + "u.";
}

}  // namespace

std::size_t read_torch(const std::filesystem::path& path, std::string_view key, const ArraySink& sink) {
  return TorchFile(path).read(key, sink);
}

void write_torch(const std::filesystem::path& path, const WrittenState& state) {
  const auto pickle = state_pickle(state);
  file::replace(path, [&](std::ostream& out) {
    ZipWriter zip(out, false);
    zip.add("archive/data.pkl", pickle, storage_alignment);
    zip.add("archive/byteorder", "little", storage_alignment);
    std::string bytes;
    for (std::size_t i = 0; i < state.tensors.size(); ++i) {
      bytes.resize(static_cast<std::size_t>(state.tensors[i].second.bytes()));
      state.read(i, bytes.data());
      zip.add(fmt::format("archive/data/{}", i), bytes, storage_alignment);
    }
    zip.add("archive/version", "3\n", storage_alignment);
    zip.finish();
  });
}

StateDict load_torch(const std::filesystem::path& path, const LoadTorchOptions& options) {
  StateDict out;
  read_torch(path, options.key, [&](std::size_t place, const data::Array& array) {
    if (out.size() <= place) out.resize(place + 1);
    out[place] = {array.name, array.tensor()};
  });
  return out;
}

void save_torch(const std::filesystem::path& path, const StateDict& tensors) {
  write_torch(path, written_state("save_torch", tensors));
}

}  // namespace clnet::io
