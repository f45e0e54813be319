#include "lib/io/torch_pickle.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>

#include "lib/base/input_file.h"

namespace clnet::io {
namespace {

constexpr std::size_t most_values = std::size_t{1} << 21, most_memo = std::size_t{1} << 20, most_marks = 1000;
constexpr int deepest_dict = 32;
constexpr std::size_t most_visits = std::size_t{1} << 22, most_name_bytes = 4096, most_dims = 64;
constexpr std::size_t most_names_and_dims = std::size_t{64} << 20;  ///< bytes of all tensors' names and extents
constexpr std::uint64_t most_torch_elements = std::numeric_limits<std::int32_t>::max();

[[noreturn]] void fault(const std::string& text) { throw PickleFault(text); }

constexpr std::array torch_types{
    TorchType{"FloatStorage", "float32", 4, Dtype::f32, copy_values<4>},
    TorchType{"HalfStorage", "float16", 2, Dtype::f16, copy_values<2>},
    TorchType{"BFloat16Storage", "bfloat16", 2, Dtype::bf16, copy_values<2>},
    TorchType{"DoubleStorage", "float64", 8, Dtype::f64, copy_values<8>},
    TorchType{"LongStorage", "int64", 8, Dtype::i64, copy_values<8>},
    TorchType{"IntStorage", "int32", 4, Dtype::i32, copy_values<4>},
    TorchType{"CharStorage", "int8", 1, Dtype::i8, copy_values<1>},
    TorchType{"ByteStorage", "uint8", 1, Dtype::u8, copy_values<1>},
    TorchType{"BoolStorage", "bool", 1, Dtype::boolean, copy_bools},
    // What clnet lacks is widened. The first type of a dtype is the one that is written.
    TorchType{"ShortStorage", "int16", 2, Dtype::i32, convert_values<std::int16_t, std::int32_t>},
    TorchType{"", "uint16", 2, Dtype::i32, convert_values<std::uint16_t, std::int32_t>},
    TorchType{"", "uint32", 4, Dtype::i64, convert_values<std::uint32_t, std::int64_t>},
    TorchType{"", "uint64", 8, Dtype::i64, convert_values<std::uint64_t, std::int64_t>},
};

/// What the globals of a pickle stand for.
enum class Known : std::uint8_t {
  ordered_dict,
  size,
  plain,            // makes a value without tensors
  tensor,           // _rebuild_tensor_v2(storage, offset, size, stride, ...)
  typed_tensor,     // _rebuild_tensor_v3(storage, offset, size, stride, requires_grad, hooks, dtype, ...)
  parameter,        // _rebuild_parameter(tensor, ...)
  tensor_of_class,  // _rebuild_from_type_v2(function, class, arguments, attributes)
  tensor_class,
  storage,  // of an element type
  untyped_storage,
  dtype,
};
struct Global {
  Known known;
  const TorchType* type = nullptr;  ///< of storages and dtypes
};

std::optional<Global> find_global(std::string_view module, std::string_view name) {
  struct Row {
    std::string_view module, name;
    Known known;
  };
  constexpr std::array rows{
      Row{"collections", "OrderedDict", Known::ordered_dict},
      Row{"torch", "Size", Known::size},
      Row{"torch", "device", Known::plain},
      Row{"__builtin__", "set", Known::plain},
      Row{"builtins", "set", Known::plain},
      Row{"_codecs", "encode", Known::plain},  // bytes in Python's older formats
      Row{"torch._utils", "_rebuild_tensor_v2", Known::tensor},
      Row{"torch._utils", "_rebuild_tensor_v3", Known::typed_tensor},
      Row{"torch._utils", "_rebuild_parameter", Known::parameter},
      Row{"torch._utils", "_rebuild_parameter_with_state", Known::parameter},
      Row{"torch._tensor", "_rebuild_from_type_v2", Known::tensor_of_class},
      Row{"torch", "Tensor", Known::tensor_class},
      Row{"torch.nn.parameter", "Parameter", Known::tensor_class},
      Row{"torch.nn.parameter", "Buffer", Known::tensor_class},
      Row{"torch.storage", "UntypedStorage", Known::untyped_storage},
  };
  for (const auto& row : rows)
    if (row.module == module && row.name == name) return Global{row.known};
  if (module == "torch")
    for (const auto& type : torch_types) {
      if (!type.storage.empty() && type.storage == name) return Global{Known::storage, &type};
      if (type.dtype == name) return Global{Known::dtype, &type};
    }
  return std::nullopt;
}

/// A value of the pickle. Texts point into it; all that holds other values is a number of Machine's lists. So values are small,
/// are copied freely, and lists that hold themselves do no harm.
struct Value {
  enum class Kind : std::uint8_t { other, integer, text, tuple, list, dict, global, storage, tensor };
  Kind kind = Kind::other;
  Known known = Known::size;  ///< of a global
  const TorchType* type = nullptr;
  std::int64_t number = 0;  ///< an integer, the elements of a storage, or the number of a list
  std::string_view text;    ///< also the key of a storage

  static Value of(std::int64_t number) { return {Kind::integer, {}, nullptr, number, {}}; }
  static Value of(std::string_view text) { return {Kind::text, {}, nullptr, 0, text}; }
};
using Kind = Value::Kind;

class Machine {
 public:
  explicit Machine(std::string_view code) : code_(code) {}

  /// The value that the pickle leaves.
  Value run() {
    for (;;) {
      const auto at = at_;
      const auto code = static_cast<unsigned char>(take(1)[0]);
      if (code == '.') break;
      if (!step(code)) fault(fmt::format("has the opcode {:#04x} at byte {}, which no state dict needs", code, at));
    }
    if (stack_.size() != 1 || !marks_.empty()) fault(fmt::format("ends with {} values instead of one", stack_.size()));
    return stack_[0];
  }
  /// Of a dict keys and values in turn, of a tensor the tuple of its arguments.
  const std::vector<Value>& items(const Value& value) const { return lists_[static_cast<std::size_t>(value.number)]; }

 private:
  // ---- Bytes of the pickle
  std::string_view take(std::uint64_t bytes) {
    if (bytes > code_.size() - at_) fault(fmt::format("ends at byte {}, within an instruction", code_.size()));
    const auto result = code_.substr(at_, static_cast<std::size_t>(bytes));
    at_ += static_cast<std::size_t>(bytes);
    return result;
  }
  template <class T>
  T number() {
    T value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  std::string_view line() {
    const auto end = code_.find('\n', at_);
    if (end == std::string_view::npos) fault("ends within the name of a global");
    const auto result = take(end - at_);
    take(1);
    return result;
  }

  // ---- The stack
  std::size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }
  void push(const Value& value) {
    if (++pushed_ > most_values) fault(fmt::format("has more than {} values", most_values));
    stack_.push_back(value);
  }
  Value pop() {
    if (stack_.size() <= floor()) fault(fmt::format("takes a value at byte {} where there is none", at_));
    const auto value = stack_.back();
    stack_.pop_back();
    return value;
  }
  Value& top(Kind kind, std::string_view name) {
    if (stack_.size() <= floor() || stack_.back().kind != kind) fault(fmt::format("needs a {} at byte {}", name, at_));
    return stack_.back();
  }
  std::vector<Value> pop_to_mark() {
    if (marks_.empty()) fault(fmt::format("ends a group at byte {} that does not begin", at_));
    const auto begin = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
    std::vector<Value> result(begin, stack_.end());
    stack_.erase(begin, stack_.end());
    marks_.pop_back();
    return result;
  }
  Value made(Kind kind, std::vector<Value> items) {
    lists_.push_back(std::move(items));
    return {kind, {}, nullptr, static_cast<std::int64_t>(lists_.size() - 1), {}};
  }
  void push_tuple(std::size_t count) {
    std::vector<Value> items(count);
    for (auto i = count; i-- > 0;) items[i] = pop();
    push(made(Kind::tuple, std::move(items)));
  }
  void append(const Value& to, const std::vector<Value>& values) {
    auto& items = lists_[static_cast<std::size_t>(to.number)];
    items.insert(items.end(), values.begin(), values.end());
  }
  void put(std::size_t place) {
    if (place >= most_memo) fault(fmt::format("remembers value {} of at most {}", place, most_memo));
    if (stack_.size() <= floor()) fault(fmt::format("remembers a value at byte {} where there is none", at_));
    if (place >= memo_.size()) memo_.resize(place + 1);
    memo_[place] = stack_.back();
  }
  void get(std::size_t place) {
    if (place >= memo_.size() || !memo_[place]) fault(fmt::format("asks for value {}, which it has not remembered", place));
    push(*memo_[place]);
  }

  // ---- Instructions
  /// False: it is not known.
  bool step(unsigned char code) {
    switch (code) {
      case 0x80:  // PROTO
        if (const auto version = number<std::uint8_t>(); version < 2 || version > 5)
          fault(fmt::format("is of version {} of Python's format, expected 2 to 5", version));
        return true;
      case 0x95: take(8); return true;  // FRAME
      case '(':
        if (marks_.size() == most_marks) fault(fmt::format("is nested more than {} deep", most_marks));
        marks_.push_back(stack_.size());
        return true;
      case '0': pop(); return true;
      case '1': pop_to_mark(); return true;
      case 'N':
      case 0x88:
      case 0x89: push({}); return true;  // None, True, False
      case 'G':
        take(8);
        push({});
        return true;
      case 'J': push(Value::of(std::int64_t{number<std::int32_t>()})); return true;
      case 'K': push(Value::of(std::int64_t{number<std::uint8_t>()})); return true;
      case 'M': push(Value::of(std::int64_t{number<std::uint16_t>()})); return true;
      case 0x8a: push_long(); return true;
      case 'X':
      case 'T': push(Value::of(take(number<std::uint32_t>()))); return true;
      case 0x8c:
      case 'U': push(Value::of(take(number<std::uint8_t>()))); return true;
      case 0x8d: push(Value::of(take(number<std::uint64_t>()))); return true;
      case 'B':  // bytes
        take(number<std::uint32_t>());
        push({});
        return true;
      case 'C':
        take(number<std::uint8_t>());
        push({});
        return true;
      case 'q': put(number<std::uint8_t>()); return true;
      case 'r': put(number<std::uint32_t>()); return true;
      case 0x94: put(memo_.size()); return true;  // MEMOIZE
      case 'h': get(number<std::uint8_t>()); return true;
      case 'j': get(number<std::uint32_t>()); return true;
      default: return step_of_groups(code);
    }
  }
  bool step_of_groups(unsigned char code) {
    switch (code) {
      case ')': push_tuple(0); return true;
      case 0x85: push_tuple(1); return true;
      case 0x86: push_tuple(2); return true;
      case 0x87: push_tuple(3); return true;
      case 't': push(made(Kind::tuple, pop_to_mark())); return true;
      case ']':
      case 0x8f: push(made(Kind::list, {})); return true;  // a list, a set
      case '}': push(made(Kind::dict, {})); return true;
      case 'a': {
        const auto value = pop();
        append(top(Kind::list, "list"), {value});
        return true;
      }
      case 'e':
      case 0x90: {
        const auto values = pop_to_mark();
        append(top(Kind::list, "list"), values);
        return true;
      }
      case 's': {
        const auto value = pop(), key = pop();
        append(top(Kind::dict, "dict"), {key, value});
        return true;
      }
      case 'u': {
        const auto values = pop_to_mark();
        if (values.size() % 2 != 0) fault(fmt::format("has a key without a value at byte {}", at_));
        append(top(Kind::dict, "dict"), values);
        return true;
      }
      case 'c': {
        const auto module = line(), name = line();
        push_global(module, name);
        return true;
      }
      case 0x93: {
        const auto name = pop(), module = pop();
        if (name.kind != Kind::text || module.kind != Kind::text) fault("has a global whose name is no text");
        push_global(module.text, name.text);
        return true;
      }
      case 'Q': push_storage(); return true;
      case 'R': reduce(); return true;
      case 'b':  // attributes, as the `_metadata` of a state dict
        pop();
        if (stack_.size() <= floor()) fault(fmt::format("sets attributes of nothing at byte {}", at_));
        return true;
      default: return false;
    }
  }

  void push_long() {
    const auto bytes = take(number<std::uint8_t>());
    if (bytes.size() > sizeof(std::int64_t)) return push({});  // a number that no tensor needs
    std::uint64_t value = !bytes.empty() && static_cast<signed char>(bytes.back()) < 0 ? ~std::uint64_t{0} : 0;
    std::memcpy(&value, bytes.data(), bytes.size());
    push(Value::of(static_cast<std::int64_t>(value)));
  }
  void push_global(std::string_view module, std::string_view name) {
    const auto global = find_global(module, name);
    if (!global)
      fault(fmt::format("refers to {}.{}, which no state dict needs; save the state_dict() alone", in_quotes(module),
                        in_quotes(name)));
    push({Kind::global, global->known, global->type, 0, {}});
  }
  /// ('storage', class, key, location, elements)
  void push_storage() {
    const auto id = pop();
    const auto* parts = id.kind == Kind::tuple && items(id).size() == 5 ? items(id).data() : nullptr;
    if (!parts || parts[0].kind != Kind::text || parts[0].text != "storage" || parts[1].kind != Kind::global ||
        (parts[1].known != Known::storage && parts[1].known != Known::untyped_storage) || parts[2].kind != Kind::text ||
        parts[4].kind != Kind::integer || parts[4].number < 0)
      fault(fmt::format("has a reference at byte {} that is no storage of PyTorch", at_));
    push({Kind::storage, {}, parts[1].type, parts[4].number, parts[2].text});
  }
  void reduce() {
    const auto arguments = pop(), function = pop();
    if (function.kind != Kind::global || arguments.kind != Kind::tuple)
      fault(fmt::format("calls at byte {} something that is no function", at_));
    push(called(function, arguments));
  }
  Value called(const Value& function, const Value& arguments) {
    const auto& given = items(arguments);
    switch (function.known) {
      case Known::ordered_dict:
        if (!given.empty()) fault("makes an OrderedDict with arguments");
        return made(Kind::dict, {});
      case Known::size:
        if (given.size() == 1 && given[0].kind == Kind::tuple) return given[0];
        fault("makes a torch.Size of something that is no tuple");
      case Known::plain: return {};
      case Known::tensor:
      case Known::typed_tensor: return {Kind::tensor, function.known, nullptr, arguments.number, {}};
      case Known::parameter:
        if (!given.empty() && given[0].kind == Kind::tensor) return given[0];
        fault("makes a parameter of something that is no tensor");
      case Known::tensor_of_class:
        if (given.size() == 4 && given[0].kind == Kind::global && given[1].kind == Kind::global &&
            given[1].known == Known::tensor_class && given[2].kind == Kind::tuple && given[0].known != Known::tensor_of_class)
          return called(Value(given[0]), Value(given[2]));
        fault("makes a tensor of an unknown class");
      default: fault("calls a class that state dicts only name");
    }
  }

  std::string_view code_;
  std::size_t at_ = 0, pushed_ = 0;
  std::vector<Value> stack_;
  std::vector<std::size_t> marks_;
  std::vector<std::optional<Value>> memo_;
  std::vector<std::vector<Value>> lists_;
};

/// Collects tensors from nested dicts and lists.
class Tensors {
 public:
  Tensors(const Machine& machine, std::string_view key) : machine_(machine), key_(key) {}

  PickledState collect(const Value& top) {
    if (top.kind == Kind::tensor)
      add("tensor", top);
    else
      visit(top, {}, 0);
    if (state_.tensors.empty() && !key_.empty())
      fault(fmt::format("has no tensor below {}; the first keys are {}", in_quotes(key_), first_keys(top)));
    require_names_once();
    return std::move(state_);
  }

 private:
  void visit(const Value& value, const std::string& name, int depth) {
    if (value.kind == Kind::tensor) return add(name, value);
    const bool is_dict = value.kind == Kind::dict;
    if (!is_dict && value.kind != Kind::list && value.kind != Kind::tuple) {
      ++state_.others;
      return;
    }
    if (depth == deepest_dict) fault(fmt::format("has dicts and lists that are nested more than {} deep", deepest_dict));
    const auto& items = machine_.items(value);
    visits_ += 1 + items.size();
    if (visits_ > most_visits) fault(fmt::format("has more than {} values in nested dicts", most_visits));
    for (std::size_t i = 0; i < items.size(); i += is_dict ? 2 : 1) {
      const auto& item = items[is_dict ? i + 1 : i];
      if (item.kind == Kind::other || item.kind == Kind::integer || item.kind == Kind::text) {
        ++state_.others;  // most of an optimizer's lists
        continue;
      }
      const auto part = is_dict ? key_text(items[i]) : std::to_string(i);
      if (name.size() + 1 + part.size() > most_name_bytes)
        fault(fmt::format("has a name of more than {} bytes", most_name_bytes));
      visit(item, name.empty() && depth == 0 ? part : name + "." + part, depth + 1);
    }
  }
  static std::string key_text(const Value& key) {
    if (key.kind == Kind::text && key.text.size() <= most_name_bytes) return std::string(key.text);
    if (key.kind == Kind::integer) return std::to_string(key.number);
    fault("has a dict whose key is neither a number nor a text of at most 4096 bytes");
  }
  std::string first_keys(const Value& top) const {
    constexpr std::size_t most_shown = 10;
    std::vector<std::string> keys;
    if (top.kind == Kind::dict)
      for (std::size_t i = 0; i < machine_.items(top).size() && keys.size() < most_shown; i += 2)
        keys.push_back(in_quotes(key_text(machine_.items(top)[i])));
    return keys.empty() ? "none" : fmt::format("{}", fmt::join(keys, ", "));
  }

  void add(std::string_view name, const Value& tensor) {
    if (!key_.empty()) {
      if (!name.starts_with(key_) || name.size() <= key_.size() || name[key_.size()] != '.') return;
      name.remove_prefix(key_.size() + 1);
    }
    const auto wrong = [&](std::string_view reason) { fault(fmt::format("tensor {} {}", in_quotes(name), reason)); };
    const auto& given = machine_.items(tensor);
    const bool is_typed = tensor.known == Known::typed_tensor;
    if (given.size() < (is_typed ? 7 : 4) || given[0].kind != Kind::storage || given[1].kind != Kind::integer ||
        given[2].kind != Kind::tuple || given[3].kind != Kind::tuple)
      wrong("has other arguments than a storage, an offset, a size and strides");
    // PyTorch writes it only where it says something: that values are negated or conjugated ones of the storage.
    const std::size_t metadata = is_typed ? 7 : 6;
    if (given.size() > metadata && given[metadata].kind != Kind::other &&
        (given[metadata].kind != Kind::dict || !machine_.items(given[metadata]).empty()))
      wrong("has metadata, as a negated or conjugated view has");
    PickledTensor out;
    out.name = name;
    out.type = is_typed && given[6].kind == Kind::global && given[6].known == Known::dtype ? given[6].type : given[0].type;
    if (!out.type) wrong("has no dtype");
    out.storage = given[0].text;
    const auto stored = given[0].type ? given[0].type->bytes : 1;
    const auto elements = static_cast<std::uint64_t>(given[0].number);
    if (elements > std::numeric_limits<std::int64_t>::max() / stored)
      wrong(fmt::format("has a storage of {} elements", elements));
    out.storage_bytes = elements * stored;
    if (given[1].number < 0) wrong(fmt::format("begins at element {}", given[1].number));
    out.offset = static_cast<std::uint64_t>(given[1].number);
    const auto take = [&](const Value& list, std::vector<std::int64_t>& to) {
      for (const auto& extent : machine_.items(list)) {
        if (extent.kind != Kind::integer || extent.number < 0) wrong("has an extent or stride that is no number from 0");
        to.push_back(extent.number);
      }
    };
    if (machine_.items(given[2]).size() > most_dims || machine_.items(given[3]).size() != machine_.items(given[2]).size())
      wrong(fmt::format("has {} extents and {} strides, expected as many and at most {}", machine_.items(given[2]).size(),
                        machine_.items(given[3]).size(), most_dims));
    used_ += sizeof out + name.size() + 16 * machine_.items(given[2]).size();
    if (used_ > most_names_and_dims) fault(fmt::format("has names and shapes of more than {} bytes", most_names_and_dims));
    take(given[2], out.extents);
    take(given[3], out.strides);
    if (const auto reason = fault_of_strides(out); !reason.empty()) wrong(reason);
    state_.tensors.push_back(std::move(out));
  }

  /// Whether all elements lie in the storage.
  static std::string fault_of_strides(const PickledTensor& tensor) {
    std::uint64_t count = 1;
    for (const auto extent : tensor.extents) {
      if (static_cast<std::uint64_t>(extent) > most_torch_elements / std::max<std::uint64_t>(count, 1))
        return fmt::format("has more than {} elements", most_torch_elements);
      count *= static_cast<std::uint64_t>(std::max<std::int64_t>(extent, 1));
    }
    if (std::find(tensor.extents.begin(), tensor.extents.end(), 0) != tensor.extents.end()) return {};
    const auto elements = tensor.storage_bytes / tensor.type->bytes;
    auto last = tensor.offset;
    for (std::size_t d = 0; d < tensor.extents.size() && last < elements; ++d) {
      const auto steps = static_cast<std::uint64_t>(tensor.extents[d] - 1),
                 stride = static_cast<std::uint64_t>(tensor.strides[d]);
      last = steps > 0 && stride > elements / steps ? elements : last + steps * stride;
    }
    if (last < elements) return {};
    return fmt::format("reaches behind the {} elements of its storage", elements);
  }

  void require_names_once() const {
    std::vector<std::string_view> names;
    for (const auto& tensor : state_.tensors) names.push_back(tensor.name);
    std::sort(names.begin(), names.end());
    if (const auto twin = std::adjacent_find(names.begin(), names.end()); twin != names.end())
      fault(fmt::format("has the tensor {} twice", in_quotes(*twin)));
  }

  const Machine& machine_;
  const std::string_view key_;
  PickledState state_;
  std::size_t visits_ = 0, used_ = 0;
};

}  // namespace

const TorchType& torch_type_of(Dtype dtype) {
  return *std::find_if(torch_types.begin(), torch_types.end(), [&](const auto& type) { return type.stored_as == dtype; });
}

PickledState read_state_pickle(std::string_view pickle, std::string_view key) {
  Machine machine(pickle);
  const auto top = machine.run();
  return Tensors(machine, key).collect(top);
}

}  // namespace clnet::io
