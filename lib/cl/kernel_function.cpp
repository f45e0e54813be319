#include "lib/cl/kernel_function.h"

#include <fmt/format.h>

#include <cctype>
#include <set>

namespace clnet::ocl {

namespace {

bool begins_word(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool in_word(char c) { return begins_word(c) || std::isdigit(static_cast<unsigned char>(c)) != 0; }

/// Reads a program's text once: finds the names that it defines, and gives its kernels the parameters of functions.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  void read() {
    while (at_ < text_.size()) step();
  }
  std::string out;
  std::set<std::string, std::less<>> macros, names;
  bool by_macros = false;  ///< something is defined by a macro that stands alone: which names cannot be told

 private:
  void step() {
    const char c = text_[at_];
    if (c == '#' && begins_line_) return directive();
    if (text_.substr(at_, 2) == "//") return copy(std::min(text_.find('\n', at_), text_.size()));
    if (text_.substr(at_, 2) == "/*") return copy(std::min(text_.find("*/", at_) + 2, text_.size()));
    if (begins_word(c)) return word();
    if (c == '\n') begins_line_ = true;
    if (std::isspace(static_cast<unsigned char>(c)) == 0) {
      begins_line_ = false;
      sign(c);
      last_ = c;
    }
    copy(at_ + 1);
  }

  void copy(std::size_t end) {
    out.append(text_.substr(at_, end - at_));
    at_ = end;
  }

  /// A line that begins with #, and those that continue it.
  void directive() {
    std::size_t end = at_;
    do {
      end = std::min(text_.find('\n', end), text_.size());
    } while (end < text_.size() && text_[end - 1] == '\\' && ++end);
    constexpr std::string_view define = "define";
    auto rest = text_.substr(at_ + 1, end - at_ - 1);
    rest.remove_prefix(std::min(rest.find_first_not_of(" \t"), rest.size()));
    if (rest == "ifdef COMPUTES_F64") return skip_block(end);
    if (rest.starts_with(define)) {
      rest.remove_prefix(define.size());
      rest.remove_prefix(std::min(rest.find_first_not_of(" \t"), rest.size()));
      std::size_t length = 0;
      while (length < rest.size() && in_word(rest[length])) ++length;
      macros.emplace(rest.substr(0, length));
    }
    copy(end);
  }

  /// Leaves out the block of a condition that does not hold, with its #endif: what it would define is not defined.
  void skip_block(std::size_t line_end) {
    at_ = line_end;
    for (int depth = 1; depth > 0 && at_ < text_.size();) {
      const auto begin = at_ + 1, end = std::min(text_.find('\n', begin), text_.size());
      const auto line = text_.substr(std::min(begin, end), end - std::min(begin, end));
      if (line.starts_with("#if")) ++depth;
      if (line.starts_with("#endif")) --depth;
      at_ = end;
    }
  }

  void word() {
    begins_line_ = false;
    std::size_t end = at_;
    while (end < text_.size() && in_word(text_[end])) ++end;
    const auto name = text_.substr(at_, end - at_);
    if (braces_ == 0 && parentheses_ == 0 && brackets_ == 0) {
      if (name == "kernel" || name == "__kernel")
        kernel_ = true;
      else if (name == "typedef")
        type_ = true;
      else if (name != "__attribute__")
        word_ = name;
      called_ = name != "__attribute__";
      words_ += called_ ? 1 : 0;
    }
    last_ = 'a';
    copy(end);
  }

  void sign(char c) {
    const bool outside = braces_ == 0 && parentheses_ == 0 && brackets_ == 0;
    switch (c) {
      case '(':
        if (outside) {
          function_ = called_ ? word_ : std::string_view();
          by_macros = by_macros || (words_ == 1 && macros.contains(function_));
        }
        ++parentheses_;
        break;
      case ')':
        if (--parentheses_ == 0 && braces_ == 0) end_of_parameters_ = out.size();
        break;
      case '[': ++brackets_; break;
      case ']': --brackets_; break;
      case '{':
        if (outside && last_ == ')' && !function_.empty()) {
          names.emplace(function_);
          if (kernel_) out.insert(end_of_parameters_, " CLNET_PLACE_PARAMETERS");
        }
        ++braces_;
        break;
      case '}':
        if (--braces_ == 0 && !type_) begin_declaration();
        break;
      case '=':
        if (outside) names.emplace(word_);
        break;
      case ';':
        if (!outside) break;
        if (type_) names.emplace(word_);
        begin_declaration();
        break;
      default: break;
    }
  }

  void begin_declaration() {
    kernel_ = type_ = called_ = false;
    words_ = 0;
    word_ = function_ = {};
  }

  std::string_view text_;
  std::size_t at_ = 0;
  bool begins_line_ = true;
  int braces_ = 0, parentheses_ = 0, brackets_ = 0;
  char last_ = 0;                     ///< but spaces and comments
  std::string_view word_, function_;  ///< the last one outside of everything, and the one before the last list of parameters
  bool called_ = false;               ///< a list of parameters here would be that of word_
  int words_ = 0;                     ///< of the declaration
  bool kernel_ = false, type_ = false;
  std::size_t end_of_parameters_ = 0;
};

}  // namespace

std::string function_name(std::string_view kernel, std::size_t part) { return fmt::format("{}_of_{}", kernel, part); }

std::string functions_of(const ProgramSource& program, std::size_t part) {
  const auto text = full_source(program);
  Reader reader(text);
  reader.read();
  std::string result;
  for (const auto& name : reader.names) result += fmt::format("#define {} {}\n", name, function_name(name, part));
  result += reader.out;
  for (const auto* list : {&reader.names, &reader.macros})
    for (const auto& name : *list) result += fmt::format("#undef {}\n", name);
  return result;
}

std::string_view before_functions() {
  return R"(#define kernel static
#define reqd_work_group_size(x, y, z)
#define CLNET_PLACE_PARAMETERS , const int place_0, const int place_1, const int place_2, const int size_0, const int size_1, const int size_2
#define get_global_id(dimension) ((size_t)place_##dimension)
#define get_group_id(dimension) ((size_t)place_##dimension)
#define get_global_size(dimension) ((size_t)size_##dimension)
)";
}

std::string_view after_functions() {
  return R"(#undef kernel
#undef reqd_work_group_size
#undef get_global_id
#undef get_group_id
#undef get_global_size
)";
}

bool may_be_function(const ProgramSource& program) {
  if (program.users()) return false;
  const auto text = full_source(program);
  for (const std::string_view foreign : {"get_local_id(", "get_local_size(", "get_num_groups(", "barrier("})
    if (text.find(foreign) != std::string::npos) return false;
  Reader reader(text);
  reader.read();
  return !reader.by_macros;
}

}  // namespace clnet::ocl
