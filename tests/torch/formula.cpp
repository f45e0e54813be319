#include "tests/torch/formula.h"

#include <cctype>
#include <cmath>
#include <cstdlib>
#include <numbers>
#include <vector>

#include "tests/torch/given.h"

namespace clnet::torch {

namespace {

/// Recursive descent; it computes while it reads.
class Reader {
 public:
  Reader(const std::string& text, double variable) : text_(text), variable_(variable) {}

  double all() {
    const double result = sum();
    skip();
    if (at_ != text_.size()) fail();
    return result;
  }

 private:
  [[noreturn]] void fail() const { throw Failed("no formula: " + text_); }
  void skip() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
  }
  bool take(const std::string& token) {
    skip();
    if (text_.compare(at_, token.size(), token) != 0) return false;
    at_ += token.size();
    return true;
  }
  bool next_is(const std::string& token) {
    skip();
    return text_.compare(at_, token.size(), token) == 0;
  }

  bool next_is_letter() {
    skip();
    return at_ < text_.size() && std::isalpha(static_cast<unsigned char>(text_[at_])) != 0;
  }

  double sum() {
    double result = product();
    for (;;)
      if (take("+"))
        result += product();
      else if (take("-"))
        result -= product();
      else
        return result;
  }
  double product() {
    double result = power();
    for (;;)
      // 2(1-e) is a product, too.
      if ((!next_is("**") && take("*")) || next_is("(") || next_is_letter())
        result *= power();
      else if (take("/"))
        result /= power();
      else
        return result;
  }
  // The sign binds less than the power, and powers from right to left.
  double power() {
    if (take("-")) return -power();
    const double base = primary();
    return take("**") || take("^") ? std::pow(base, power()) : base;
  }
  double primary() {
    if (take("(")) {
      const double result = sum();
      if (!take(")")) fail();
      return result;
    }
    skip();
    if (at_ < text_.size() && std::isalpha(static_cast<unsigned char>(text_[at_])) != 0) return named();
    const char* begin = text_.c_str() + at_;
    char* end = nullptr;
    const double result = std::strtod(begin, &end);
    if (end == begin) fail();
    at_ += static_cast<std::size_t>(end - begin);
    return result;
  }
  double named() {
    std::string name;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 || text_[at_] == '_'))
      name += text_[at_++];
    // math.cos
    if (name == "math" && take(".")) return named();
    if (name == "e" || name == "t" || name == "i" || name == "epoch" || name == "step") return variable_;
    if (name == "pi") return std::numbers::pi;
    if (!take("(")) fail();
    std::vector<double> given{sum()};
    while (take(",")) given.push_back(sum());
    if (!take(")")) fail();
    if (given.size() == 2 && name == "min") return std::min(given[0], given[1]);
    if (given.size() == 2 && name == "max") return std::max(given[0], given[1]);
    if (given.size() == 2 && name == "pow") return std::pow(given[0], given[1]);
    if (given.size() != 1) fail();
    if (name == "cos") return std::cos(given[0]);
    if (name == "sin") return std::sin(given[0]);
    if (name == "exp") return std::exp(given[0]);
    if (name == "log") return std::log(given[0]);
    if (name == "sqrt") return std::sqrt(given[0]);
    fail();
  }

  const std::string& text_;
  double variable_;
  std::size_t at_ = 0;
};

}  // namespace

std::function<double(double)> formula(const std::string& text) {
  const auto colon = text.find(':');
  const auto body = colon == std::string::npos ? text : text.substr(colon + 1);
  static_cast<void>(Reader(body, 1).all());
  return [body](double variable) { return Reader(body, variable).all(); };
}

}  // namespace clnet::torch
